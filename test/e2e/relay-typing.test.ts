import { expect } from 'vitest'
import { hubWithContexts, isTyping, lastingSim, OK, relayCall } from '../support/relay-calls.ts'
import { until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const USER = 'ann@im.wechat'

verifies(['relay:sendtyping:shows', 'relay:sendtyping:answer'], async () => {
  const { hub, token, context } = await hubWithContexts(['ann', 'ben'])
  const { status, body } = await relayCall(hub, token, 'sendtyping', { token, context_token: context('ann') })
  expect(status).toBe(200)
  expect(body).toEqual(OK)
  expect(await isTyping(hub, 'ann')).toBe(true)
  expect(await isTyping(hub, 'ben')).toBe(false)
})

verifies(
  ['relay:sendtyping:real-body', 'relay:sendtyping:ignores-ticket', 'relay:sendtyping:answer'],
  'user, ticket and status start and end it; the ticket may be the hub’s, a stale one, or none',
  async () => {
    const { hub, token } = await hubWithContexts(['ann'])
    const { body: config } = await relayCall(hub, token, 'getconfig', { ilink_user_id: USER })
    for (const ticket of [config.typing_ticket, 'c3RhbGU=', '', undefined]) {
      const typing = { ilink_user_id: USER, typing_ticket: ticket }
      const on = await relayCall(hub, token, 'sendtyping', { ...typing, status: 1, base_info: {} })
      expect([on.status, on.body]).toEqual([200, OK])
      expect(await isTyping(hub, 'ann')).toBe(true)
      const off = await relayCall(hub, token, 'sendtyping', { ...typing, status: 2, base_info: {} })
      expect([off.status, off.body]).toEqual([200, OK])
      await until(async () => !(await isTyping(hub, 'ann')))
    }
    // Some clients name the user otherwise and leave the status out.
    expect((await relayCall(hub, token, 'sendtyping', { to_user_id: USER })).body).toEqual(OK)
    expect(await isTyping(hub, 'ann')).toBe(true)
  },
)

verifies('relay:sendtyping:ignores-ticket', 'a ticket the service no longer takes is replaced', async () => {
  let aheadMs = 0
  const sim = await lastingSim(() => Date.now() + aheadMs)
  const { hub, token, context } = await hubWithContexts(['ann'], { sim })
  const { body: config } = await relayCall(hub, token, 'getconfig', { context_token: context('ann') })
  const typing = { ilink_user_id: USER, typing_ticket: config.typing_ticket, status: 1 }
  expect((await relayCall(hub, token, 'sendtyping', typing)).status).toBe(200)
  await relayCall(hub, token, 'sendtyping', { ...typing, status: 2 })
  await until(async () => !(await isTyping(hub, 'ann')))
  aheadMs = 23 * 60 * 60_000
  hub.advance(aheadMs)
  expect((await relayCall(hub, token, 'sendtyping', typing)).body).toEqual(OK)
  expect(await isTyping(hub, 'ann')).toBe(true)
})

verifies('typing:cancel:reply', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  await relayCall(hub, token, 'sendtyping', { context_token: context('ann') })
  expect(await isTyping(hub, 'ann')).toBe(true)
  await hub.send(token, context('ann'), 'here it is')
  await until(async () => !(await isTyping(hub, 'ann')))
})

verifies('typing:cancel:disconnect', 'notifystop, deletion and the hub’s own end all end it', async () => {
  const sim = await lastingSim()
  const { hub, token, context } = await hubWithContexts(['ann'], { sim })
  const show = async (client: string, body: object) => {
    expect((await relayCall(hub, client, 'sendtyping', body)).body).toEqual(OK)
    expect(await isTyping(hub, 'ann')).toBe(true)
  }
  await show(token, { context_token: context('ann') })
  await relayCall(hub, token, 'msg/notifystop')
  await until(async () => !(await isTyping(hub, 'ann')))

  await show(token, { context_token: context('ann') })
  expect((await hub.call('DELETE', '/hub/clients/bot')).status).toBeLessThan(300)
  await until(async () => !(await isTyping(hub, 'ann')))

  const next = await hub.register('next')
  await hub.say('ann', 'hello')
  await show(next, { to_user_id: USER })
  await hub.stop()
  expect(await isTyping(hub, 'ann')).toBe(false)
})

verifies(['relay:getconfig:own-ticket', 'relay:getconfig:token-only'], async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const { body: first } = await relayCall(hub, token, 'getconfig', { token })
  expect(first).toEqual({ ...OK, typing_ticket: expect.stringMatching(/.+/) })
  const bodies = [{}, { ilink_user_id: USER, context_token: context('ann') }, { ilink_user_id: 'nobody@im.wechat' }]
  for (const body of bodies) expect((await relayCall(hub, token, 'getconfig', body)).body).toEqual(first)
  // It is the hub's: no call to the service is behind it, so it is there while the service is not.
  hub.sim.control.faults.add({ kind: 'down' })
  expect((await relayCall(hub, token, 'getconfig', { token })).body).toEqual(first)
})
