import fc from 'fast-check'
import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { clienteleOf, type RoutableClient, type RoutingView, route } from './router.ts'

let lastId = 0
function client(name: string, more: Partial<RoutableClient> = {}): RoutableClient {
  lastId += 1
  return { id: lastId, name, online: true, isDefault: false, fallback: false, passthrough: [], ...more }
}

function view(clients: RoutableClient[], more: Partial<RoutingView> = {}): RoutingView {
  return {
    clients: clienteleOf(clients),
    chosenId: null,
    quotedId: null,
    prefix: '/',
    linkText: 'The line is fine.',
    ...more,
  }
}

verifies(['routing:mention:one-message', 'routing:mention:keeps-route'], () => {
  const [ann, bob] = [client('ann'), client('bob')]
  const routing = route('@bob hello', view([ann, bob], { chosenId: ann.id }))
  expect(routing).toMatchObject({ state: 'routed', reason: 'mention', targets: [bob.id] })
  expect(routing).not.toHaveProperty('choose')
})

test('a mention ends where the name ends: at space, punctuation or the end of the text', () => {
  const [ann, bob] = [client('ann'), client('bob')]
  const reasonOf = (text: string) => route(text, view([ann, bob], { chosenId: ann.id })).reason
  for (const text of ['@bob', '@bob hi', '@bob\nhi', '@bob, hi', '@bob: hi', '@bob，你好', '@bob．', '@bob\u2005hi'])
    expect(reasonOf(text), text).toBe('mention')
  for (const text of ['@bobby hi', '@bo hi', '@ bob', 'hi @bob', '@', '@@bob', '@bob-hi'])
    expect(reasonOf(text), text).toBe('chosen')
})

verifies('routing:names:any-case', () => {
  const [ann, bob] = [client('ann'), client('BoB')]
  expect(route('@bOb hi', view([ann, bob])).targets).toEqual([bob.id])
  expect(route('/use BOB', view([ann, bob])).choose).toBe(bob.id)
})

test('a name whose lower case is longer than itself can be mentioned', () => {
  const [ann, other] = [client('ann'), client('İİ')]
  expect(route('@İİ hi', view([ann, other])).targets).toEqual([other.id])
})

verifies('routing:names:longest', () => {
  const clients = [client('bob'), client('bob smith'), client('bob s')]
  const target = (text: string) => clients.find(({ id }) => id === route(text, view(clients)).targets[0])?.name
  expect(target('@bob smith hi')).toBe('bob smith')
  expect(target('@bob s hi')).toBe('bob s')
  expect(target('@bob smit')).toBe('bob')
})

verifies('routing:order:command', () => {
  const routing = route('/list', view([client('ann', { isDefault: true })]))
  expect(routing).toMatchObject({ state: 'command', reason: 'command:list', targets: [] })
  expect(routing.notices).toHaveLength(1)
})

verifies('routing:order:quote', () => {
  const [ann, bob] = [client('ann', { isDefault: true }), client('bob')]
  const routing = route('and what then?', view([ann, bob], { chosenId: ann.id, quotedId: bob.id }))
  expect(routing).toMatchObject({ reason: 'quote', targets: [bob.id] })
})

verifies('routing:order:chosen', () => {
  const [ann, bob] = [client('ann', { isDefault: true }), client('bob')]
  expect(route('hi', view([ann, bob], { chosenId: bob.id }))).toMatchObject({ reason: 'chosen', targets: [bob.id] })
})

verifies('routing:order:default', () => {
  const [ann, bob] = [client('ann'), client('bob', { isDefault: true, online: false })]
  expect(route('hi', view([ann, bob]))).toMatchObject({ reason: 'default', targets: [bob.id] })
})

verifies('routing:order:first-online', () => {
  const clients = [client('ann', { online: false }), client('bob'), client('cid')]
  expect(route('hi', view(clients))).toMatchObject({ reason: 'first_online', targets: [clients[1]?.id] })
})

verifies('routing:order:fallback-last', () => {
  const [bridge, ann] = [client('bridge', { fallback: true }), client('ann')]
  expect(route('hi', view([bridge, ann])).targets).toEqual([ann.id])
  const away = { ...ann, online: false }
  expect(route('hi', view([bridge, away]))).toMatchObject({ reason: 'fallback_online', targets: [bridge.id] })
})

verifies('routing:order:first-registered', () => {
  const clients = [client('bridge', { fallback: true }), client('zoe'), client('ann')].map((one) => ({
    ...one,
    online: false,
  }))
  expect(route('hi', view(clients))).toMatchObject({ reason: 'first_registered', targets: [clients[1]?.id] })
  expect(route('hi', view(clients.slice(0, 1)))).toMatchObject({
    reason: 'first_registered',
    targets: [clients[0]?.id],
  })
})

verifies('routing:order:nobody', () => {
  const routing = route('hi', view([]))
  expect(routing).toMatchObject({ state: 'unrouted', reason: 'nobody', targets: [] })
  expect(routing.notices).toHaveLength(1)
  expect(routing.notices[0]?.text).toContain('/help')
})

verifies('routing:order:precedence', () => {
  const all = {
    bridge: client('bridge', { fallback: true }),
    first: client('first'),
    default: client('default', { isDefault: true }),
    chosen: client('chosen'),
    quoted: client('quoted'),
    mentioned: client('mentioned'),
  }
  const clients = Object.values(all)
  const full = view(clients, { chosenId: all.chosen.id, quotedId: all.quoted.id })
  // Each line takes the rule of the line before away.
  expect(route('@mentioned /list', full)).toMatchObject({ reason: 'mention', targets: [all.mentioned.id] })
  expect(route('/list', full)).toMatchObject({ reason: 'command:list', targets: [] })
  expect(route('hi', full)).toMatchObject({ reason: 'quote', targets: [all.quoted.id] })
  expect(route('hi', { ...full, quotedId: null })).toMatchObject({ reason: 'chosen' })
  expect(route('hi', { ...full, quotedId: null, chosenId: null })).toMatchObject({ reason: 'default' })
  const noDefault = clients.map((one) => ({ ...one, isDefault: false }))
  expect(route('hi', view(noDefault))).toMatchObject({ reason: 'first_online', targets: [all.first.id] })
  const onlyBridge = noDefault.map((one) => ({ ...one, online: one.fallback }))
  expect(route('hi', view(onlyBridge))).toMatchObject({ reason: 'fallback_online', targets: [all.bridge.id] })
  const nobodyOnline = noDefault.map((one) => ({ ...one, online: false }))
  expect(route('hi', view(nobodyOnline))).toMatchObject({ reason: 'first_registered', targets: [all.first.id] })
})

test('a choice or a quote of a client that has gone counts for nothing', () => {
  const ann = client('ann')
  expect(route('hi', view([ann], { chosenId: 9_999, quotedId: 9_998 }))).toMatchObject({ reason: 'first_online' })
})

test('a message without a text is routed by everything but its text', () => {
  const [ann, bob] = [client('ann'), client('bob')]
  expect(route(null, view([ann, bob], { quotedId: bob.id }))).toMatchObject({ reason: 'quote', targets: [bob.id] })
  expect(route(null, view([ann, bob]))).toMatchObject({ reason: 'first_online', targets: [ann.id] })
  expect(route('', view([ann, bob]))).toMatchObject({ reason: 'first_online', targets: [ann.id] })
})

verifies('routing:offline:told', 'the notice about an offline client goes once in ten minutes, and names it', () => {
  const bob = client('bob', { online: false })
  const [notice, ...others] = route('@bob hi', view([client('ann'), bob])).notices
  expect(others).toEqual([])
  expect(notice).toMatchObject({ kind: `offline:${bob.id}`, onceMs: 600_000 })
  expect(notice?.text).toContain('bob is offline')
  expect(route('@ann hi', view([client('ann'), bob])).notices).toEqual([])
})

const REASON =
  /^(mention|quote|chosen|default|first_online|fallback_online|first_registered|nobody|broadcast|command:(list|use|status|help|broadcast)|passthrough:[a-z]+)$/

test('for any text and any clients there is exactly one reason, and only registered clients are targets', () => {
  const name = fc.oneof(
    fc.constantFrom('bob', 'Bob', 'bob smith', '2', 'list', 'İ', 'a b c'),
    fc.string({ maxLength: 8 }),
  )
  const someone = fc.record({
    name,
    online: fc.boolean(),
    isDefault: fc.boolean(),
    fallback: fc.boolean(),
    passthrough: fc.subarray(['list', 'use', 'status', 'help', 'broadcast', 'new']),
  })
  const clients = fc
    .array(someone, { maxLength: 6 })
    .map((all) => all.map((one, index): RoutableClient => ({ ...one, id: index + 1 })))
  const word = fc.oneof(
    fc.constantFrom(
      '@',
      '/',
      '!',
      '//',
      ' ',
      '\n',
      'list',
      'use',
      'broadcast',
      'help',
      'status',
      'new',
      '2',
      '-1',
      '99',
    ),
    name,
    fc.string({ unit: 'binary', maxLength: 6 }),
  )
  const text = fc.option(fc.array(word, { maxLength: 6 }).map((words) => words.join('')))
  const anyId = fc.option(fc.integer({ min: 0, max: 8 }))
  fc.assert(
    fc.property(
      text,
      clients,
      anyId,
      anyId,
      fc.constantFrom('/', '!', '##'),
      (said, all, chosenId, quotedId, prefix) => {
        const routing = route(said, view(all, { chosenId, quotedId, prefix }))
        const ids = all.map(({ id }) => id)
        expect(routing.reason).toMatch(REASON)
        expect(ids).toEqual(expect.arrayContaining(routing.targets))
        expect(new Set(routing.targets).size).toBe(routing.targets.length)
        expect(routing.state === 'routed').toBe(routing.targets.length > 0)
        expect(routing.state === 'unrouted').toBe(routing.reason === 'nobody')
        if (all.length > 0) expect(routing.state).not.toBe('unrouted')
        if (routing.state !== 'routed') expect(routing.notices).toHaveLength(1)
        if (routing.choose != null) expect(ids).toContain(routing.choose)
        // The same things seen again give the same answer.
        expect(route(said, view(all, { chosenId, quotedId, prefix }))).toEqual(routing)
      },
    ),
    { numRuns: 300 },
  )
})
