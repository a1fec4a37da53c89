import { expect, onTestFinished, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { createIntake, newContextToken } from './intake.ts'
import type { IngestResult, MessageRecord } from './model.ts'
import { openRegistry } from './registry.ts'
import { openMemoryStore } from './store/memory.ts'

const ANN = 'ann@im.wechat'

/** An intake on a memory store, with clients by name; who is in `online` has just called. */
async function startIntake(names: string[], { online = names, prefix = '/' } = {}) {
  const store = await openMemoryStore()
  onTestFinished(() => store.close())
  const at = 1_700_000_000_000
  const registry = await openRegistry(store.clients, () => at)
  for (const name of names) {
    const { client } = await registry.register(name, { label: name, fallback: false })
    if (online.includes(name)) registry.seen(client)
  }
  const told: IngestResult[] = []
  let lastId = 7_497_484_083_968_569_000n
  const intake = createIntake({
    store,
    registry,
    account: 'main',
    cursorSource: 'test',
    bounds: { maxMessages: 100, maxBytes: 1_000_000, overflowNotice: { kind: 'o', onceMs: 0, text: 'full' } },
    prefix,
    linkText: () => 'The line is fine.',
    now: () => at,
    onStored: (result) => told.push(result),
  })
  const message = (text: string, more: object = {}) => {
    lastId += 1n
    const fields = { from_user_id: ANN, item_list: [{ type: 1, text_item: { text } }], message_type: 1, ...more }
    return `{"message_id":${lastId},${JSON.stringify(fields).slice(1)}`
  }
  const idOf = (name: string) => registry.byName(name)?.id ?? 0
  return {
    store,
    registry,
    intake,
    told,
    at,
    message,
    idOf,
    take: (...messages: string[]) => intake.take([intake.read({ messages, cursor: null })]),
    /** Every stored message, oldest first, as `reason > clients`. */
    async routes() {
      const all = await store.messages.list({ limit: 100 })
      const line = ({ reason, deliveries }: MessageRecord) =>
        `${reason} > ${deliveries.map(({ clientName }) => clientName).join()}`
      return all.reverse().map(line)
    },
    queueOf: (name: string) => store.deliveries.read(idOf(name), 0, 100, 0),
    replies: () =>
      told
        .flatMap(({ sends }) => sends.map(({ userId, parts }) => [userId, JSON.parse(parts[0]?.body ?? '{}')] as const))
        .map(([userId, { item_list: items }]) => `${userId}: ${items[0].text_item.text}`),
  }
}

verifies('routing:reason:stored', async () => {
  const { take, message, routes, registry, idOf } = await startIntake(['one', 'two'])
  await take(message('hi'), message('@two hi'), message('/list'), message('/broadcast hi'), message('/use two'))
  await registry.update(idOf('one'), { isDefault: true })
  await take(message('hi'), message('hi', { from_user_id: 'bob@im.wechat' }), message('/new'))
  expect(await routes()).toEqual([
    'first_online > one',
    'mention > two',
    'command:list > ',
    'broadcast > one,two',
    'command:use > ',
    'chosen > two',
    'default > one',
    'chosen > two',
  ])
})

test('a choice counts for the next message of the same batch, for that user in any case, and for nobody else', async () => {
  const { take, message, routes } = await startIntake(['one', 'two'])
  await take(
    message('hi'),
    message('/use two'),
    message('hi', { from_user_id: ANN.toUpperCase() }),
    message('hi', { from_user_id: 'bob@im.wechat' }),
    message('/use one'),
    message('hi'),
  )
  const reasons = [
    'first_online > one',
    'command:use > ',
    'chosen > two',
    'first_online > one',
    'command:use > ',
    'chosen > one',
  ]
  expect(await routes()).toEqual(reasons)
})

verifies('routing:order:quote', 'a quote finds the author by the id of the answer, else by its text', async () => {
  const { take, message, routes, store, idOf, at } = await startIntake(['one', 'two'])
  const send = await store.sends.begin({
    clientId: idOf('two'),
    account: 'main',
    userId: ANN,
    key: null,
    bodyHash: '',
    text: 'the answer',
    parts: ['{}'],
    now: at,
  })
  const upstreamId = '7497484083968569999'
  await store.sends.progress({
    sendId: send.id,
    parts: [{ part: 0, state: 'accepted', upstreamId }],
    state: 'accepted',
    now: at,
  })
  const quoting = (ref: string, from = ANN) =>
    message('why?').replace('"type":1', `"type":1,"ref_msg":${ref}`).replace(ANN, from)
  await take(
    quoting(`{"svr_id":${upstreamId}}`),
    quoting('{"message_item":{"text_item":{"text":"the answer"}}}'),
    quoting('{"svr_id":7497484083968569998}'),
    quoting(`{"svr_id":${upstreamId}}`, 'bob@im.wechat'),
    quoting('"nonsense"'),
  )
  expect(await routes()).toEqual([
    'quote > two',
    'quote > two',
    'first_online > one',
    'first_online > one',
    'first_online > one',
  ])
})

verifies(['routing:offline:queued', 'routing:offline:told'], async () => {
  const { take, message, routes, queueOf, replies } = await startIntake(['one'], { online: [] })
  await take(message('first'), message('second'))
  expect(await routes()).toEqual(['first_registered > one', 'first_registered > one'])
  expect((await queueOf('one')).map(({ spec }) => JSON.parse(spec).content)).toEqual(['first', 'second'])
  expect(replies()).toEqual([`${ANN}: one is offline. Your message is kept and goes to it as soon as it is back.`])
  await take(message('third', { from_user_id: 'bob@im.wechat' }))
  expect(replies()).toHaveLength(2)
})

verifies(
  'routing:order:nobody',
  'with no client the text is kept for the operator, and the user is told once',
  async () => {
    const { take, message, store, replies } = await startIntake([])
    await take(message('hi'), message('hello?'))
    expect(replies()).toHaveLength(1)
    expect(replies()[0]).toContain('/help')
    expect(await store.deadLetters.list({ limit: 10 })).toMatchObject([
      { reason: 'no_client' },
      { reason: 'no_client' },
    ])
  },
)

verifies('routing:commands:own-view', async () => {
  const { take, message, replies } = await startIntake(['one', 'two'])
  const spy = 'eve@im.wechat'
  await take(message('/use two'), message('my secret'), message('@one my other secret'))
  for (const text of ['/list', '/status', '/help', '/use nobody', '/use one'])
    await take(message(text, { from_user_id: spy }))
  const shown = replies()
    .filter((line) => line.startsWith(spy))
    .join('\n')
  expect(shown).not.toMatch(/ann@|secret/)
  // Ann's choice is not shown as Eve's.
  expect(shown).toContain('1. one (online) ← you talk to this one')
  expect(shown).toContain('You talk to one')
})

verifies(
  'routing:commands:escape',
  'the client sees one slash, in the raw message too, and all else to the letter',
  async () => {
    const { take, message, queueOf } = await startIntake(['one'])
    await take(message('//help "me"', { seq: 3, unknown: [1.0, '\u00e4', { deep: true }] }))
    const [delivery] = await queueOf('one')
    expect(JSON.parse(delivery?.spec ?? '').content).toBe('/help "me"')
    expect(delivery?.raw).toBe(
      `{"from_user_id":"${ANN}","item_list":[{"type":1,"text_item":{"text":"/help \\"me\\""}}],"message_type":1,"seq":3,"unknown":[1,"ä",{"deep":true}]}`,
    )
    expect(delivery?.wireId).toBe('7497484083968569001')
  },
)

verifies('upstream:poll:quarantine', async () => {
  const { take, message, store, routes, queueOf } = await startIntake(['one'])
  const odd = [
    'null',
    '"not an object"',
    '[]',
    '{}',
    '{"message_id":7,"item_list":[]}',
    '{"from_user_id":"","item_list":[]}',
    '{"from_user_id":5}',
    `{"from_user_id":"${'x'.repeat(300)}"}`,
    `{"from_user_id":"${ANN}","item_list":"none"}`,
    `{"from_user_id":"${ANN}","item_list":[null]}`,
    // Valid JSON, too deep to be looked through.
    `{"from_user_id":"${ANN}","seq":1,"create_time_ms":1,"item_list":[{"type":1,"x":${'['.repeat(5e5)}${']'.repeat(5e5)}}]}`,
  ]
  for (const one of odd) await take(message('before'), one, message('after'))
  expect((await queueOf('one')).length).toBe(2 * odd.length)
  const setAside = await store.messages.list({ state: 'quarantined', limit: 100 })
  expect(setAside).toHaveLength(odd.length)
  for (const { reason, deliveries } of setAside)
    expect([reason.startsWith('malformed: '), deliveries]).toEqual([true, []])
  expect((await routes()).filter((line) => line === 'first_online > one')).toHaveLength(2 * odd.length)
})

test('odd fields are no reason to set a message aside, and the five fields keep their types', async () => {
  const { take, queueOf, store } = await startIntake(['one'])
  const head = `"from_user_id":"${ANN}"`
  const odd = [
    `{${head}}`,
    `{${head},"item_list":null,"message_id":null,"context_token":5}`,
    `{${head},"message_id":"abc","create_time_ms":"soon"}`,
    `{${head},"message_id":1e400,"create_time_ms":1e400}`,
    `{${head},"message_id":-1,"create_time_ms":-5}`,
    `{${head},"message_id":0,"create_time_ms":1e300}`,
    `{${head},"item_list":[{"type":1,"text_item":{"text":5}}]}`,
    `{${head},"item_list":[{"type":99}]}`,
    `{${head},"item_list":[{"type":1,"text_item":{"text":"\\ud800\\u0000"}}]}`,
  ]
  await take(...odd)
  const queue = await queueOf('one')
  expect(queue).toHaveLength(odd.length)
  let last = 0n
  for (const { spec, wireId } of queue) {
    const { from_user: from, content, msg_type: type, timestamp } = JSON.parse(spec)
    expect([from, typeof content, type]).toEqual([ANN, 'string', 'text'])
    expect(Number.isSafeInteger(timestamp) && timestamp > 0).toBe(true)
    expect(BigInt(wireId)).toBeGreaterThan(last)
    last = BigInt(wireId)
  }
  expect(await store.messages.list({ state: 'quarantined', limit: 10 })).toEqual([])
})

test("the bot's own echo goes to nobody, and a repetition of a message goes nowhere twice", async () => {
  const { take, message, store, queueOf } = await startIntake(['one'])
  const once = message('hi', { seq: 1, create_time_ms: 1_700_000_000_000 })
  const freshId = once.replace(/"message_id":\d+/, '"message_id":"another"')
  await take(message('echo', { message_type: 2 }), once, once)
  await take(once, freshId)
  expect(await queueOf('one')).toHaveLength(1)
  const suppressed = await store.messages.list({ state: 'suppressed', limit: 10 })
  expect(suppressed.map(({ reason }) => reason).filter((reason) => reason === 'bot_echo')).toHaveLength(1)
  expect(suppressed).toHaveLength(4)
})

test('what happens is told after the commit, and not when the commit fails', async () => {
  const { store, registry, message, at } = await startIntake(['one'])
  const order: string[] = []
  let works = false
  const intake = createIntake({
    store: {
      ...store,
      messages: {
        ...store.messages,
        async ingest(batch) {
          if (!works) throw new Error('the disk is full')
          const result = await store.messages.ingest(batch)
          order.push('committed')
          return result
        },
      },
    },
    registry,
    account: 'main',
    cursorSource: 'test',
    bounds: { maxMessages: 100, maxBytes: 1_000_000, overflowNotice: { kind: 'o', onceMs: 0, text: 'full' } },
    prefix: '/',
    linkText: () => '',
    now: () => at,
    onStored: () => order.push('told'),
  })
  const batch = { messages: [message('hi')], cursor: 'c1' }
  await expect(intake.take([intake.read(batch)])).rejects.toThrow('the disk is full')
  expect([order, await store.messages.cursor('main', 'test')]).toEqual([[], ''])
  works = true
  await intake.take([intake.read(batch)])
  expect([order, await store.messages.cursor('main', 'test')]).toEqual([['committed', 'told'], 'c1'])
})

test('a dry run tells where a text would go and changes nothing', async () => {
  const { intake, take, message, routes, told, store } = await startIntake(['one', 'two'])
  await take(message('/use two'))
  expect(await intake.dryRun(ANN.toUpperCase(), 'hi')).toMatchObject({ reason: 'chosen' })
  expect(await intake.dryRun(ANN, '/use one')).toMatchObject({ reason: 'command:use' })
  expect(await intake.dryRun('stranger', '@two hi')).toMatchObject({ reason: 'mention' })
  expect(await intake.dryRun(ANN, 'hi')).toMatchObject({ reason: 'chosen' })
  expect([(await routes()).length, told.length]).toEqual([1, 1])
  expect(await store.conversations.get('main', 'stranger')).toBeNull()
})

test('context tokens have 128 random bits, are never the same, and grow with time', () => {
  const now = Date.now()
  const tokens = Array.from({ length: 1_000 }, () => newContextToken(now))
  expect(new Set(tokens).size).toBe(1_000)
  for (const token of tokens) expect(token).toMatch(/^ctx_[0-9a-z]{9}[\w-]{22}$/)
  for (const later of [now + 1, now + 40, now + 10 * 365 * 86_400_000])
    expect(newContextToken(later) > (tokens[0] ?? '')).toBe(true)
})
