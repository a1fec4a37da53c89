import { expect } from 'vitest'
import { hubWithContexts, relayCall } from '../support/relay-calls.ts'
import { verifies } from '../support/verifies.ts'

verifies('wire:budget:states', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const { faults } = hub.sim.control
  expect((await hub.send(token, context('ann'), 'one')).body).toMatchObject({ ret: 0, send_state: 'accepted' })
  faults.add({ kind: 'unconfirmed', count: 1 })
  const unconfirmed = await hub.send(token, context('ann'), 'two')
  expect(unconfirmed.body).toMatchObject({ ret: 0, send_state: 'unconfirmed' })
  expect(unconfirmed.body).not.toHaveProperty('message_id')
  faults.add({ kind: 'refuse_send', ret: -3, count: 1 })
  expect((await hub.send(token, context('ann'), 'three')).body).toMatchObject({ ret: 422, send_state: 'failed' })
  faults.add({ kind: 'throttle', count: 1 })
  expect((await hub.send(token, context('ann'), 'four')).body).toMatchObject({
    ret: 429,
    send_state: 'throttled',
    upstream_code: -2,
  })

  const { body } = await hub.call('GET', '/hub/sends?user=ann@im.wechat')
  expect(body.sends.map(({ state }: { state: string }) => state)).toEqual([
    'throttled',
    'failed',
    'unconfirmed',
    'accepted',
  ])
  expect(body.sends.at(-1)).toMatchObject({
    client: 'bot',
    account: 'main',
    to_user: 'ann@im.wechat',
    parts: [{ state: 'accepted', upstream_id: expect.stringMatching(/^\d{17,}$/) }],
  })
  expect(JSON.stringify(body)).not.toContain('four')
  const older = await hub.call('GET', `/hub/sends?before=${body.sends[1].id}&limit=1`)
  expect(older.body.sends).toMatchObject([{ state: 'unconfirmed' }])
  expect((await hub.call('GET', '/hub/sends?limit=0')).body.error.details.field).toBe('limit')
})

verifies(
  'wire:budget:states',
  'a throttled send may be tried again under the same client_id, and then goes out',
  async () => {
    const { hub, token, context } = await hubWithContexts(['ann'])
    hub.sim.control.faults.add({ kind: 'throttle', count: 1 })
    const msg = {
      context_token: context('ann'),
      client_id: 'same',
      item_list: [{ type: 1, text_item: { text: 'again' } }],
    }
    expect((await relayCall(hub, token, 'sendmessage', { msg })).status).toBe(429)
    hub.advance(60_000)
    expect((await relayCall(hub, token, 'sendmessage', { msg })).body).toMatchObject({ ret: 0, send_state: 'accepted' })
    expect(await hub.answers('ann', 1)).toEqual(['again'])
  },
)

verifies('wire:budget:account-window', async () => {
  const { hub, token, context } = await hubWithContexts(['ann', 'bob'], {
    budget: { accountSends: 3, accountWindowMs: 60_000 },
  })
  for (const text of ['one', 'two']) expect((await hub.send(token, context('ann'), text)).status).toBe(200)
  expect((await hub.send(token, context('bob'), 'three')).status).toBe(200)
  const refused = await hub.send(token, context('ann'), 'four')
  expect(refused).toMatchObject({
    status: 429,
    body: { ret: 429, send_state: 'throttled', errmsg: expect.stringContaining('--account-sends') },
  })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await hub.call('GET', '/metrics')).text).toContain('switchboard_hub_account_window_sends{account="main"} 3')
  hub.advance(61_000)
  expect((await hub.send(token, context('ann'), 'five')).status).toBe(200)
  expect(await hub.answers('ann', 3)).toEqual(['one', 'two', 'five'])
})

verifies('wire:budget:remaining', async () => {
  const { hub, token, context } = await hubWithContexts(['ann', 'bob'], { budget: { sendsPerContext: 4 } })
  await hub.send(token, context('ann'), 'one')
  await hub.send(token, context('ann'), 'x'.repeat(4_500))
  const read = async (query = '') => (await hub.call('GET', `/hub/budget${query}`)).body
  const { conversations, limits, account_sends_used: used } = await read()
  expect(conversations).toMatchObject([
    { account: 'main', user: 'ann@im.wechat', window_open: true, context_sends_used: 4, context_sends_left: 0 },
    { account: 'main', user: 'bob@im.wechat', window_open: true, context_sends_used: 0, context_sends_left: 4 },
  ])
  expect((await hub.call('GET', '/hub/conversations')).body.conversations).toMatchObject([
    { user: 'bob@im.wechat', window_open: true, context_sends_left: 4 },
    { user: 'ann@im.wechat', window_open: true, context_sends_left: 0 },
  ])
  const [{ last_message_at: heard, window_closes_at: closes, after }] = conversations
  expect(Date.parse(closes) - Date.parse(heard)).toBe(24 * 3_600_000)
  expect(limits).toEqual({
    sends_per_context: 4,
    reply_window_ms: 86_400_000,
    account_sends: null,
    account_window_ms: 300_000,
  })
  expect(used).toEqual({ main: 4 })
  expect((await read(`?after=${encodeURIComponent(after)}`)).conversations).toMatchObject([{ user: 'bob@im.wechat' }])
  expect((await read('?user=BOB@im.wechat')).conversations).toHaveLength(1)
  expect((await hub.call('GET', '/hub/budget?after=x')).status).toBe(400)
  hub.advance(25 * 3_600_000)
  expect((await read('?user=ann@im.wechat')).conversations).toMatchObject([{ window_open: false }])
  // Online, so that the hub does not spend one of them on saying that it is away.
  await relayCall(hub, token, 'msg/notifystart')
  await hub.say('ann', 'back')
  expect((await read('?user=ann@im.wechat')).conversations).toMatchObject([
    { window_open: true, context_sends_left: 4 },
  ])
})
