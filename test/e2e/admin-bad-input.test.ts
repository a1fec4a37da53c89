import fc from 'fast-check'
import { expect } from 'vitest'
import {
  BulkBody,
  DefaultClientBody,
  DryRunBody,
  PatchClientBody,
  RegisterBody,
  ReplayBody,
  RotateBody,
} from '../../src/wire/hub.ts'
import { type Answer, startTestHub, type TestHub } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'
import { anyWrongBody, type Subject, type WrongBody, wrongBodies } from '../support/wrong-bodies.ts'

const BODY_BYTES = 256 * 1024

interface Endpoint extends Subject {
  method: string
  path: string
  /** The answer to control characters in a field; those that are no mistake are left out. */
  control: Record<string, number>
}

interface Ids {
  message: number
  letter: number
}

/** The endpoints with a body that works. */
const ENDPOINTS: Record<string, (ids: Ids) => Endpoint> = {
  register: () => ({
    method: 'POST',
    path: '/hub/register',
    schema: RegisterBody,
    good: { name: 'new', label: 'New', fallback: true },
    control: { name: 400, label: 400 },
    bodyLimitBytes: BODY_BYTES,
  }),
  'patch a client': () => ({
    method: 'PATCH',
    path: '/hub/clients/first',
    schema: PatchClientBody,
    good: { label: 'Other', default: true, fallback: true, passthrough: ['list'] },
    control: { label: 400, 'passthrough.0': 400 },
    bodyLimitBytes: BODY_BYTES,
  }),
  'rotate a token': () => ({
    method: 'POST',
    path: '/hub/clients/first/rotate',
    schema: RotateBody,
    good: { overlap_seconds: 60 },
    control: {},
    bodyLimitBytes: BODY_BYTES,
  }),
  'set the default': () => ({
    method: 'PUT',
    path: '/hub/default',
    schema: DefaultClientBody,
    good: { name: 'second' },
    control: { name: 404 },
    bodyLimitBytes: BODY_BYTES,
  }),
  'dry run': () => ({
    method: 'POST',
    path: '/hub/route/dry-run',
    schema: DryRunBody,
    good: { user: 'ann@im.wechat', text: '/use second' },
    control: {},
    bodyLimitBytes: BODY_BYTES,
  }),
  'replay a message': ({ message }) => ({
    method: 'POST',
    path: `/hub/messages/${message}/replay`,
    schema: ReplayBody,
    good: { client: 'first' },
    control: { client: 404 },
    bodyLimitBytes: BODY_BYTES,
  }),
  'replay a dead letter': ({ letter }) => ({
    method: 'POST',
    path: `/hub/dead-letters/${letter}/replay`,
    schema: ReplayBody,
    good: { client: 'second' },
    control: { client: 404 },
    bodyLimitBytes: BODY_BYTES,
  }),
  'replay many': ({ letter }) => ({
    method: 'POST',
    path: '/hub/dead-letters/replay',
    schema: BulkBody,
    good: { ids: [letter] },
    control: {},
    bodyLimitBytes: BODY_BYTES,
  }),
  "replay a client's": () => ({
    method: 'POST',
    path: '/hub/dead-letters/replay',
    schema: BulkBody,
    good: { client: 'first' },
    control: { client: 404 },
    bodyLimitBytes: BODY_BYTES,
  }),
  'discard many': ({ letter }) => ({
    method: 'POST',
    path: '/hub/dead-letters/discard',
    schema: BulkBody,
    good: { ids: [letter] },
    control: {},
    bodyLimitBytes: BODY_BYTES,
  }),
}

verifies(['hub:register:changes-nothing', 'hub:errors:shape'], () => tryEveryField('register'))
verifies('hub:register:changes-nothing', 'register: whatever chance puts into a field', () => tryByChance('register'))

for (const name of Object.keys(ENDPOINTS).filter((one) => one !== 'register')) {
  verifies('hub:errors:shape', `${name}: every field wrong in turn gets its error and changes nothing`, () =>
    tryEveryField(name),
  )
  verifies('hub:errors:shape', `${name}: whatever chance puts into a field`, () => tryByChance(name))
}

async function tryEveryField(name: string): Promise<void> {
  const { hub, ids, before } = await busyHub()
  const endpoint = ENDPOINTS[name]!(ids)
  let tried = 0
  for (const wrong of wrongBodies(endpoint)) {
    const status = documentedStatus(endpoint, wrong)
    if (status === undefined) continue
    tried += 1
    const answer = await hub.call(endpoint.method, endpoint.path, { body: wrong.text })
    expectRefused(answer, status, wrong.what)
    const [field = ''] = wrong.field.split('.')
    if (status === 400) expect(answer.body.error.message, wrong.what).toContain(field)
  }
  expect(tried).toBeGreaterThan(20)
  expect(await stateOf(hub)).toEqual(before)
  // The body that is right is taken: what was refused above was refused for its mistake.
  const good = await hub.call(endpoint.method, endpoint.path, { body: endpoint.good })
  expect(good.status, good.text).toBeLessThan(300)
}

async function tryByChance(name: string): Promise<void> {
  const { hub, ids, before } = await busyHub()
  const endpoint = ENDPOINTS[name]!(ids)
  const refused = fc.asyncProperty(anyWrongBody(endpoint), async ({ text, what }) => {
    expectRefused(await hub.call(endpoint.method, endpoint.path, { body: text }), 400, what)
  })
  await fc.assert(refused, { numRuns: 40 })
  expect(await stateOf(hub)).toEqual(before)
}

/** What the decisions say to this body; undefined where it is no mistake. */
function documentedStatus({ control }: Endpoint, { kind, field }: WrongBody): number | undefined {
  if (kind === 'huge') return 413
  return kind === 'control characters' ? control[field] : 400
}

const CODES: Record<number, string> = { 400: 'bad_request', 404: 'not_found', 413: 'too_large' }

function expectRefused({ status, headers, body }: Answer, expected: number, what: string): void {
  expect([status, headers.get('content-type')], what).toEqual([expected, 'application/json; charset=utf-8'])
  expect(Object.keys(body), what).toEqual(['error'])
  const { code, message, ...more } = body.error
  expect(code, what).toBe(CODES[expected])
  expect(message, what).toMatch(/^.{10,}\.$/s)
  // The value is not told again: it may be a secret, and it may be huge.
  expect(message.length, what).toBeLessThan(200)
  expect(['details', undefined], what).toContain(Object.keys(more)[0])
}

/** Two clients; one message was handed out and one waits, another is a dead letter. */
async function busyHub() {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await hub.register('first', { label: 'The first' })
  await hub.register('second')
  await hub.say('ann', 'dead')
  hub.advance(25 * 60 * 60_000)
  await hub.hub.delivery.expire()
  await hub.say('ann', 'one')
  await hub.poll(token)
  await hub.say('ann', 'two')
  const [, message] = (await hub.call('GET', '/hub/messages')).body.messages
  const [letter] = (await hub.call('GET', '/hub/dead-letters')).body.dead_letters
  const ids: Ids = { message: message.id, letter: letter.id }
  await hub.answers('ann', 2)
  return { hub, ids, before: await stateOf(hub) }
}

/** All that a call could change. */
async function stateOf({ hub, store, sim }: TestHub) {
  await store.deliveries.flush()
  return {
    ...structuredClone(await store.clients.load()),
    positions: hub.registry.all().map(({ id }) => ({ ...hub.delivery.position(id) })),
    registry: structuredClone(hub.registry.all()),
    messages: await store.messages.list({ limit: 50 }),
    letters: await store.deadLetters.list({ limit: 50 }),
    conversation: await store.conversations.get('main', 'ann@im.wechat'),
    sends: sim.control.state().sends,
  }
}
