import { expect, test } from 'vitest'
import { type TestHub, until } from '../support/test-hub.ts'
import { twoAccounts } from '../support/two-accounts.ts'
import { verifies } from '../support/verifies.ts'

verifies(['accounts:routing:bound', 'accounts:send:right-account'], async () => {
  const { hub } = await twoAccounts()
  const tokens = {
    shop: await hub.register('shop-bot', { account: 'shop' }),
    main: await hub.register('main-bot', { account: 'main' }),
    all: await hub.register('any-bot'),
  }
  for (const token of Object.values(tokens)) await hub.poll(token)
  const expected: [bot: string, text: string][] = []
  for (let n = 0; n < 30; n += 1) {
    const bot = n % 2 === 0 ? 'default' : 'shop'
    const text = `${n % 3 === 0 ? '@any-bot ' : ''}number ${n}`
    hub.sim.control.say({ user: 'ann', bot, text })
    expected.push([bot, text])
  }
  const got: [string, string][] = []
  for (const [name, token] of Object.entries(tokens)) void answerAll(hub, name, token, got)
  await until(() => got.length === 30)
  await until(async () => (await saidTo(hub, 'default')).length + (await saidTo(hub, 'shop')).length === 30)
  for (const bot of ['default', 'shop']) {
    const mine = expected.filter(([of]) => of === bot).map(([, text]) => text)
    const answers = await saidTo(hub, bot)
    expect(answers.map((text) => text.replace(/^\w+: /, '')).sort()).toEqual(mine.sort())
    const other = bot === 'shop' ? 'main' : 'shop'
    expect(answers.filter((text) => text.startsWith(`${other}: `))).toEqual([])
    expect(answers.some((text) => text.startsWith('all: '))).toBe(true)
  }
  const listed = await hub.call('GET', '/hub/messages?account=shop')
  expect(listed.body.messages).toHaveLength(15)
  expect(listed.body.messages.every(({ account }: { account: string }) => account === 'shop')).toBe(true)
})

verifies('accounts:clients:binding', async () => {
  const { hub } = await twoAccounts()
  await hub.register('bot', { account: 'shop' })
  expect((await hub.call('GET', '/hub/clients/bot')).body.account).toBe('shop')
  const patch = (account: unknown) => hub.call('PATCH', '/hub/clients/bot', { body: { account } })
  expect((await patch(null)).body.account).toBe(null)
  expect((await patch('main')).body.account).toBe('main')
  for (const wrong of ['nobody', '', 7, 'Main!']) {
    const refused = await patch(wrong)
    expect([refused.status, refused.body.error.details.field]).toEqual([400, 'account'])
  }
  const dryRun = (account: string) =>
    hub.call('POST', '/hub/route/dry-run', { body: { user: 'ann@im.wechat', text: 'hello', account } })
  expect((await dryRun('main')).body.clients).toEqual(['bot'])
  expect((await dryRun('shop')).body.state).toBe('unrouted')
  expect((await dryRun('nobody')).status).toBe(404)
})

verifies('accounts:send:ambiguous-user', async () => {
  const { hub } = await twoAccounts()
  const token = await hub.register('bot')
  await hub.poll(token)
  await hub.say('ann', 'in main')
  await hub.say('bob', 'in main')
  await hub.say('ann', 'in shop', { bot: 'shop' })
  await hub.poll(token)
  const send = (user: string) =>
    hub.call('POST', '/ilink/bot/sendmessage', {
      token,
      body: { msg: { to_user_id: user, item_list: [{ type: 1, text_item: { text: 'hi' } }] } },
    })
  expect((await send('bob@im.wechat')).status).toBe(200)
  const refused = await send('ann@im.wechat')
  expect(refused.status).toBe(400)
  expect(refused.body.errmsg).toMatch(/several accounts \(main, shop\).*context_token/)
  expect(await saidTo(hub, 'shop')).toEqual([])
  await hub.call('PATCH', '/hub/clients/bot', { body: { account: 'shop' } })
  expect((await send('ann@im.wechat')).status).toBe(200)
  await until(async () => (await saidTo(hub, 'shop')).length === 1)
})

verifies('accounts:health:all-up', async () => {
  const { hub } = await twoAccounts()
  await until(async () => (await hub.call('GET', '/health')).body.status === 'ok')
  hub.sim.control.faults.add({ kind: 'expired', bot: 'shop' })
  await until(async () => (await hub.call('GET', '/health')).body.status === 'degraded')
  const { body } = await hub.call('GET', '/health')
  expect(body).toMatchObject({
    upstream: 'reconnecting',
    upstream_detail: {
      account: 'shop',
      action: expect.stringContaining('switchboard login shop'),
      accounts: { main: 'connected', shop: expect.any(String) },
    },
  })
  // The other one goes on as if nothing had happened.
  const token = await hub.register('bot')
  await hub.say('ann', 'hello')
  const [message] = (await hub.poll(token)).body.messages
  expect((await hub.send(token, message.context_token, 'hi')).status).toBe(200)
})

verifies('accounts:logout:queue-stays', async () => {
  const { hub, sim } = await twoAccounts()
  const token = await hub.register('bot')
  await hub.say('ann', 'from the shop', { bot: 'shop' })
  expect((await hub.call('DELETE', '/hub/upstream/accounts/shop')).status).toBe(204)
  expect((await hub.call('DELETE', '/hub/upstream/accounts/shop')).status).toBe(404)
  expect((await hub.call('GET', '/hub/upstream')).body.accounts).toMatchObject([{ account: 'main' }])
  expect((await hub.call('GET', '/health')).body.status).toBe('ok')
  const [message] = (await hub.poll(token)).body.messages
  expect(message.content).toBe('from the shop')
  const refused = await hub.send(token, message.context_token, 'hi')
  expect([refused.status, refused.body.errmsg]).toEqual([503, expect.stringContaining('shop is logged out')])
  // Logged in again, the same message can be answered.
  const { body } = await hub.call('POST', '/hub/upstream/login', { body: { account: 'shop' } })
  sim.control.accounts.scan({ qrcode: sim.control.accounts.qrCodes().at(-1)?.qrcode ?? '', bot: 'shop' })
  await until(async () => (await hub.call('GET', `/hub/upstream/login/${body.login_id}`)).body.status === 'confirmed')
  expect((await hub.send(token, message.context_token, 'hi')).status).toBe(200)
  expect(await saidTo(hub, 'shop')).toContain('hi')
})

test('a bot that another account has is renewed there', async () => {
  const { hub, sim } = await twoAccounts()
  const { body } = await hub.call('POST', '/hub/upstream/login', { body: { account: 'third' } })
  sim.control.accounts.scan({ qrcode: sim.control.accounts.qrCodes().at(-1)?.qrcode ?? '', bot: 'shop' })
  const login = async () => (await hub.call('GET', `/hub/upstream/login/${body.login_id}`)).body
  await until(async () => (await login()).status === 'confirmed')
  expect(await login()).toMatchObject({ account: 'shop', message: expect.stringContaining('renewed') })
  const { accounts } = (await hub.call('GET', '/hub/upstream')).body
  expect(accounts).toMatchObject([{ account: 'main' }, { account: 'shop' }])
})

/** A hub with two accounts at one sim: `main` is its default bot, `shop` another. */
async function answerAll(hub: TestHub, name: string, token: string, got: [string, string][]): Promise<void> {
  while (got.length < 30) {
    const { body } = await hub.poll(token)
    for (const { context_token: contextToken, content } of body?.messages ?? []) {
      got.push([name, content])
      await hub.send(token, contextToken, `${name}: ${content}`)
    }
  }
}

/** What the user heard from a bot, but for the hub's own words. */
async function saidTo(hub: TestHub, bot: string, user = 'ann'): Promise<string[]> {
  const { messages } = await hub.sim.control.conversation({ user, bot })
  const texts = messages.filter(({ from }) => from === 'bot').map((message) => String(message.text))
  return texts.filter((text) => !text.includes('is offline'))
}
