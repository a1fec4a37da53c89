import { expect, vi } from 'vitest'
import { madeElements, seriousProblems, testBrowser } from '../support/browser.ts'
import { overflow } from '../support/panel.ts'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

// A browser takes its time on a busy machine.
vi.setConfig({ testTimeout: 90_000 })

const openPage = testBrowser()
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>'

async function openChat(hub: TestHub, options = {}) {
  const opened = await openPage(options)
  await opened.page.goto(hub.sim.url)
  await opened.page.getByRole('heading', { name: 'Switchboard sim' }).waitFor()
  return opened
}

verifies('web:chat:talk', async () => {
  const hub = await startTestHub({ holdMs: 5_000 })
  const token = await hub.register('helper')
  const { page, problems } = await openChat(hub)
  await page.getByText('Bot connected').waitFor()
  const ann = page.getByRole('region', { name: 'Chat of ann' })
  await page.getByRole('region', { name: 'Chat of bob' }).waitFor()
  await ann.getByLabel('Message as ann').fill('hello there')
  await page.keyboard.press('Enter')
  await ann.getByRole('log').getByText('hello there').waitFor()
  const { body } = await hub.poll(token)
  const [message] = body.messages
  expect([message.from_user, message.content]).toEqual(['ann@im.wechat', 'hello there'])
  expect(await ann.getByText('The bot is typing').count()).toBe(0)
  await hub.call('POST', '/relay/bot/sendtyping', { token, body: { context_token: message.context_token, status: 1 } })
  await ann.getByText('The bot is typing').waitFor()
  await hub.send(token, message.context_token, 'hello ann')
  await ann.getByText('hello ann').waitFor()
  await ann.getByText('The bot is typing').waitFor({ state: 'detached' })

  await page.getByLabel('Another user').fill('cat')
  await page.getByRole('button', { name: 'Open a chat' }).click()
  const cat = page.getByRole('region', { name: 'Chat of cat' })
  await cat.getByLabel('Send a file').setInputFiles({
    name: 'dot.png',
    mimeType: 'image/png',
    buffer: Buffer.from(PIXEL, 'base64'),
  })
  const picture = cat.getByRole('img', { name: 'Sent in the chat' })
  await picture.waitFor()
  const width = await page.evaluate(
    `(async (image) => { await image.decode(); return image.naturalWidth })(document.querySelector('.bubble img'))`,
  )
  expect(width).toBe(1)
  await cat.getByLabel('Send a file').setInputFiles({
    name: 'notes.txt',
    mimeType: 'text/plain',
    buffer: Buffer.from('my notes'),
  })
  const link = cat.getByRole('link', { name: 'notes.txt' })
  await link.waitFor()
  await until(async () => (await link.getAttribute('href')) !== null)
  expect(problems).toEqual([])
})

verifies('web:chat:trouble', async () => {
  const hub = await startTestHub()
  const { page, problems } = await openChat(hub)
  await page.getByRole('button', { name: 'Service away' }).click()
  await until(() => !hub.hub.link.isUp())
  await page.getByRole('button', { name: /^Service away on/ }).waitFor()
  await page.getByRole('button', { name: 'Mend all' }).click()
  await until(() => hub.hub.link.isUp())
  expect(hub.sim.control.faults.list()).toEqual([])
  // A fault that somebody else caused is seen too.
  hub.sim.control.faults.add({ kind: 'slow', delay_ms: 1 })
  await page.getByRole('button', { name: /^Slow on/ }).waitFor()

  const asked = await fetch(`${hub.sim.url}/ilink/bot/get_bot_qrcode`)
  const { qrcode }: { qrcode: string } = JSON.parse(await asked.text())
  const scanner = page.getByRole('region', { name: 'Scan a QR code' })
  await scanner.getByText(`${qrcode.slice(0, 8)}…`).waitFor()
  await scanner.getByRole('button', { name: 'Only scan' }).click()
  await scanner.getByText('scanned').waitFor()
  await scanner.getByRole('button', { name: 'Scan and confirm' }).click()
  await scanner.getByText('When a bot asks for a login').waitFor()
  expect(hub.sim.control.accounts.qrCodes().find((code) => code.qrcode === qrcode)?.status).toBe('confirmed')
  expect(problems).toEqual([])
})

verifies(['web:chat:front', 'web:pages:policy'], async () => {
  const hub = await startTestHub()
  const forCurl = await fetch(hub.sim.url)
  expect(forCurl.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(await forCurl.text()).toContain('curl')
  const page = await fetch(hub.sim.url, { headers: { accept: 'text/html,*/*' } })
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(page.headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; script-src 'self'; style-src 'self';/,
  )
  expect((await fetch(`${hub.sim.url}/assets/..%2fchat.html`)).status).toBe(404)
  const foreign = await fetch(`${hub.sim.url}/sim/news`, { headers: { origin: 'http://elsewhere.example' } })
  expect(foreign.status).toBe(403)

  // The news wait until there are some.
  const first = JSON.parse(await (await fetch(`${hub.sim.url}/sim/news`)).text())
  const next = fetch(`${hub.sim.url}/sim/news?after=${first.revision}&wait_ms=30000`)
  hub.sim.control.say({ user: 'ann', text: 'news' })
  const { revision, users } = JSON.parse(await (await next).text())
  expect(revision).toBeGreaterThan(first.revision)
  expect(users).toMatchObject([{ user_id: 'ann@im.wechat', messages: 1 }])
})

verifies('web:pages:markup', 'the chat page shows markup as text', async () => {
  const hub = await startTestHub({ holdMs: 5_000 })
  const token = await hub.register('helper')
  const user = `${EVIL}@im`
  hub.sim.control.say({ user, text: `text ${EVIL}` })
  hub.sim.control.say({ user, file_base64: 'aGVsbG8=', file_name: `file ${EVIL}` })
  hub.sim.control.say({ user, image_base64: Buffer.from(`<svg onload="document.title=3">`).toString('base64') })
  const { body } = await hub.poll(token)
  await hub.send(token, body.messages[0].context_token, `answer ${EVIL}`)
  const { page, problems } = await openChat(hub)
  await page.getByText(`text ${EVIL}`).waitFor()
  await page.getByText(`file ${EVIL}`).waitFor()
  await page.getByText(`answer ${EVIL}`).waitFor()
  await page.getByRole('heading', { name: user }).waitFor()
  // What is no picture is not shown as one.
  await page.getByText('The file is no longer there.').waitFor()
  expect(await madeElements(page)).toBe(0)
  expect(await page.title()).toBe('Switchboard sim')
  expect(problems).toEqual([])
})

for (const colorScheme of ['light', 'dark'] as const) {
  verifies('web:pages:accessible', `axe finds nothing serious on the chat page in ${colorScheme} mode`, async () => {
    const hub = await startTestHub({ holdMs: 5_000 })
    const token = await hub.register('helper')
    hub.sim.control.say({ user: 'ann', text: 'hello' })
    const { body } = await hub.poll(token)
    await hub.send(token, body.messages[0].context_token, 'hi')
    hub.sim.control.faults.add({ kind: 'throttle', count: 1 })
    await fetch(`${hub.sim.url}/ilink/bot/get_bot_qrcode`)
    const { page } = await openChat(hub, { colorScheme })
    await page.getByText('hi', { exact: true }).waitFor()
    expect(await seriousProblems(page)).toEqual([])
  })
}

verifies('web:pages:phone', 'the chat page fits on a phone', async () => {
  const hub = await startTestHub()
  for (const user of ['ann', 'bob', 'w'.repeat(150)]) hub.sim.control.say({ user, text: 't'.repeat(300) })
  const { page } = await openChat(hub, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true })
  await page.getByText('t'.repeat(300)).first().waitFor()
  expect(await overflow(page)).toBe(0)
  await page.getByLabel('Message as ann').fill('from the phone')
  await page.getByRole('button', { name: 'Send as ann' }).tap()
  await page.getByText('from the phone').waitFor()
})
