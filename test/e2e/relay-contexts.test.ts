import { expect, onTestFinished } from 'vitest'
import { openMemoryStore } from '../../src/hub/store/memory.ts'
import { hubWithContexts, lastingSim, OK, onlineClient, relayCall } from '../support/relay-calls.ts'
import { startTestHub } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const HOUR_MS = 60 * 60_000
const DAY_MS = 24 * HOUR_MS

verifies('contexts:token:lifetime', 'a day later, received or not, the message can still be answered', async () => {
  const { hub, token, context } = await hubWithContexts(['ann', 'ben'])
  hub.advance(DAY_MS + HOUR_MS)
  await hub.hub.delivery.expire()
  await hub.store.messages.prune(hub.hub.now())
  expect((await hub.send(token, context('ann'), 'late')).body).toMatchObject(OK)
  expect((await relayCall(hub, token, 'sendtyping', { context_token: context('ben') })).body).toEqual(OK)
  expect(await hub.answers('ann', 1)).toContain('late')
})

verifies('contexts:token:restart', async () => {
  const store = await openMemoryStore()
  onTestFinished(() => store.close())
  const sim = await lastingSim()
  const { hub, token, context } = await hubWithContexts(['ann'], { store, sim })
  await hub.stop()
  const next = await startTestHub({ store, sim })
  expect((await next.send(token, context('ann'), 'after the restart')).body).toMatchObject(OK)
  expect(await next.answers('ann', 1)).toEqual(['after the restart'])
})

verifies(
  [
    'relay:errors:unknown-context',
    'relay:errors:expired-context',
    'relay:errors:foreign-context',
    'relay:errors:one-context-text',
  ],
  'unknown, expired and foreign context tokens are a 404 with one text, and nothing is sent',
  async () => {
    const { hub, token, context } = await hubWithContexts(['ann'])
    const other = await onlineClient(hub, 'other')
    const upstreamToken = hub.sim.control.say({ user: 'ann', text: 'again' }).context_token
    const calls = async (caller: string, contextToken: unknown) => {
      const item_list = [{ type: 1, text_item: { text: 'x' } }]
      return [
        await relayCall(hub, caller, 'sendmessage', { context_token: contextToken, content: 'x' }),
        await relayCall(hub, caller, 'sendmessage', { msg: { context_token: contextToken, item_list } }),
        await relayCall(hub, caller, 'sendtyping', { context_token: contextToken }),
      ]
    }
    const unknown = await calls(token, `ctx_${'A'.repeat(22)}`)
    const nonsense = await calls(token, "' OR 1=1 --")
    const upstreams = await calls(token, upstreamToken)
    const foreign = await calls(other, context('ann'))
    const position = { ...hub.hub.delivery.position(1) }
    hub.advance(8 * DAY_MS)
    const expired = await calls(token, context('ann'))
    for (const { status, body } of [...unknown, ...nonsense, ...upstreams, ...foreign, ...expired]) {
      expect(status).toBe(404)
      expect(body).toEqual({ ret: 404, errcode: 404, errmsg: unknown[0]?.body.errmsg })
    }
    expect(unknown[0]?.body.errmsg).toContain('context_token')
    expect(hub.sim.control.state().sends).toBe(0)
    expect({ ...hub.hub.delivery.position(1) }).toEqual(position)
    expect(position.settledSeq).toBe(0)
  },
)

verifies('relay:errors:foreign-context', 'naming the right user beside it does not help', async () => {
  const { hub, context } = await hubWithContexts(['ann'])
  const other = await onlineClient(hub, 'other')
  await hub.say('ann', '@other hello')
  const item_list = [{ type: 1, text_item: { text: 'x' } }]
  const msg = { to_user_id: 'ann@im.wechat', context_token: context('ann'), item_list }
  expect((await relayCall(hub, other, 'sendmessage', { msg })).status).toBe(404)
  const typing = { ilink_user_id: 'ann@im.wechat', context_token: context('ann'), status: 1 }
  expect((await relayCall(hub, other, 'sendtyping', typing)).status).toBe(404)
  expect(hub.sim.control.state().sends).toBe(0)
})
