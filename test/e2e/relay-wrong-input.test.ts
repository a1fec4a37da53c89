import fc from 'fast-check'
import { expect } from 'vitest'
import { AnyBody, GetUpdatesBody, SendMessageBody, SendTextBody, SendTypingBody } from '../../src/wire/relay.ts'
import { onlineClient } from '../support/relay-calls.ts'
import { type Answer, startTestHub, type TestHub } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'
import { anyWrongBody, type Subject, type WrongBody, wrongBodies, wrongMethods } from '../support/wrong-bodies.ts'

const POLL_BYTES = 64 * 1024
const SEND_BYTES = 1024 * 1024
const USER = 'ann@im.wechat'
const PATHS = [
  'getupdates',
  'sendmessage',
  'sendtyping',
  'getconfig',
  'getuploadurl',
  'msg/notifystart',
  'msg/notifystop',
]

interface Endpoint extends Subject {
  path: string
  /** The answer to control characters in a field; those that are no mistake are left out. */
  control: Record<string, number>
}

/** The endpoints with a body that works; `token` and `contextToken` are a client's. */
function endpoints(token: string, contextToken: string): Record<string, Endpoint> {
  const item = { type: 1, text_item: { text: 'hi' } }
  const any = { schema: AnyBody, good: { token }, bodyLimitBytes: POLL_BYTES, control: { token: 401 } }
  const typing = { path: 'sendtyping', schema: SendTypingBody, bodyLimitBytes: POLL_BYTES }
  return {
    getupdates: {
      path: 'getupdates',
      schema: GetUpdatesBody,
      good: { token, get_updates_buf: '' },
      bodyLimitBytes: POLL_BYTES,
      control: { token: 401 },
    },
    'sendmessage, flat': {
      path: 'sendmessage',
      schema: SendTextBody,
      good: { token, context_token: contextToken, content: 'hi', msg_type: 'text' },
      bodyLimitBytes: SEND_BYTES,
      control: { token: 401, context_token: 404, msg_type: 400 },
    },
    'sendmessage, msg': {
      path: 'sendmessage',
      schema: SendMessageBody,
      good: { token, msg: { to_user_id: USER, context_token: contextToken, client_id: 'c1', item_list: [item] } },
      bodyLimitBytes: SEND_BYTES,
      control: { token: 401, 'msg.to_user_id': 400, 'msg.context_token': 404 },
    },
    'sendtyping, context': {
      ...typing,
      good: { token, context_token: contextToken },
      control: { token: 401, context_token: 404, ilink_user_id: 400, to_user_id: 400 },
    },
    'sendtyping, user': {
      ...typing,
      good: { ilink_user_id: USER, typing_ticket: 'ticket', status: 2 },
      control: { token: 401, context_token: 404, ilink_user_id: 404 },
    },
    getconfig: { ...any, path: 'getconfig' },
    getuploadurl: { ...any, path: 'getuploadurl' },
    notifystart: { ...any, path: 'msg/notifystart' },
    notifystop: { ...any, path: 'msg/notifystop' },
  }
}

for (const name of Object.keys(endpoints('', ''))) {
  verifies(
    ['relay:errors:changes-nothing', 'relay:errors:shape', 'relay:errors:code-is-status'],
    `${name}: every field wrong in turn, and whatever chance puts there, gets its error and changes nothing`,
    async () => {
      const { hub, token, contextToken, before } = await busyHub()
      const endpoint = endpoints(token, contextToken)[name]!
      let tried = 0
      for (const wrong of wrongBodies(endpoint)) {
        const status = documentedStatus(endpoint, wrong)
        if (status === undefined) continue
        tried += 1
        const prefix = tried % 2 === 0 ? '/relay/bot/' : '/ilink/bot/'
        const answer = await hub.call('POST', prefix + endpoint.path, { token, body: wrong.text })
        expect(view(answer), wrong.what).toEqual(refusal(status))
        if (status === 400) expect(answer.body.errmsg, wrong.what).toContain(fieldToBlame(wrong))
        expect(await stateOf(hub), wrong.what).toEqual(before)
      }
      expect(tried).toBeGreaterThan(20)

      const refused = fc.asyncProperty(anyWrongBody(endpoint), async ({ text }) => {
        const answer = await hub.call('POST', `/relay/bot/${endpoint.path}`, { token, body: text })
        expect(view(answer)).toEqual(refusal(400))
      })
      await fc.assert(refused, { numRuns: 40 })
      expect(await stateOf(hub)).toEqual(before)
    },
  )
}

verifies(['relay:errors:wrong-method', 'relay:errors:changes-nothing'], async () => {
  const { hub, token, before } = await busyHub()
  for (const path of PATHS.flatMap((path) => [`/relay/bot/${path}`, `/ilink/bot/${path}`])) {
    for (const method of wrongMethods(['POST'])) {
      const answer = await hub.call(method, path, { token })
      expect(answer.headers.get('allow'), `${method} ${path}`).toBe('POST')
      if (method === 'HEAD') expect(answer.status).toBe(405)
      else expect(view(answer), `${method} ${path}`).toEqual(refusal(405))
    }
  }
  expect(await stateOf(hub)).toEqual(before)
})

verifies(['relay:errors:unknown-path', 'relay:errors:changes-nothing'], async () => {
  const { hub, token, before } = await busyHub()
  const unknown = ['', 'x', 'getupdates/', 'GetUpdates', 'getupdates/x', 'notifystop', 'msg', 'msg/', 'msg/x', '../x/y']
  for (const path of unknown.flatMap((path) => [`/relay/bot/${path}`, `/ilink/bot/${path}`])) {
    for (const method of ['POST', 'GET', 'DELETE']) {
      const answer = await hub.call(method, path, { token, ...(method === 'POST' ? { body: '{"broken' } : {}) })
      expect(view(answer), `${method} ${path}`).toEqual(refusal(404))
    }
  }
  expect(await stateOf(hub)).toEqual(before)
})

/** What the decisions say to this body; undefined where it is no mistake. */
function documentedStatus({ control }: Endpoint, { kind, field }: WrongBody): number | undefined {
  if (kind === 'huge') return 413
  return kind === 'control characters' ? control[field] : 400
}

/** Without `msg` a send is read as the flat shape, and that one has a context token. */
function fieldToBlame({ kind, field }: WrongBody): string {
  return kind === 'missing' && field === 'msg' ? 'context_token' : field
}

/** The answer as far as every failure is alike. */
function view({ status, headers, body }: Answer) {
  const { ret, errcode, errmsg } = body ?? {}
  const saysWhat = typeof errmsg === 'string' && errmsg.length > 10
  return { status, type: headers.get('content-type'), ret, errcode, saysWhat }
}

function refusal(status: number) {
  return { status, type: 'application/json; charset=utf-8', ret: status, errcode: status, saysWhat: true }
}

/** A hub in the middle of its work: one message was handed out, one waits, the user sees typing, somebody else is there. */
async function busyHub() {
  const hub = await startTestHub({ holdMs: 50 })
  const token = await onlineClient(hub, 'first')
  await onlineClient(hub, 'second')
  await hub.say('ann', 'one')
  const { body } = await hub.poll(token)
  const contextToken: string = body.messages[0].context_token
  await hub.say('ann', 'two')
  const typing = await hub.call('POST', '/relay/bot/sendtyping', { token, body: { to_user_id: USER } })
  expect(typing.status).toBe(200)
  const before = await stateOf(hub)
  expect(before).toMatchObject({ clients: [{ name: 'first', queue_size: 2, status: 'online' }, { name: 'second' }] })
  expect(before.conversation.typing).toBe(true)
  return { hub, token, contextToken, before }
}

/** All that a call could change, but when the client was last seen: that moves with every call. */
async function stateOf({ call, hub, store, sim }: TestHub) {
  const { body } = await call('GET', '/hub/clients')
  return {
    total: body.total,
    online: body.online,
    clients: body.clients.map((client: object) => ({ ...client, last_seen: 'moves' })),
    positions: hub.registry.all().map(({ id }) => ({ ...hub.delivery.position(id) })),
    messages: await store.messages.list({ limit: 50 }),
    letters: await store.deadLetters.list({ limit: 50 }),
    parked: hub.delivery.parked,
    conversation: await sim.control.conversation({ user: 'ann' }),
    sends: sim.control.state().sends,
  }
}
