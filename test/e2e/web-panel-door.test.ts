import { expect, test, vi } from 'vitest'
import { madeElements, seriousProblems, testBrowser } from '../support/browser.ts'
import { lookAgain, openPanel, overflow, registerOnPage, shownToken } from '../support/panel.ts'
import { startTestHub } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

// A browser takes its time on a busy machine.
vi.setConfig({ testTimeout: 90_000 })

const openPage = testBrowser()
const PARTS = ['', 'conversations', 'messages', 'dead-letters', 'route']
const EVIL = ['<img src=x onerror="document.title=1">', '</td><script>document.title=2</script>', '{{7*7}}`\'"']

verifies(['hub:ui:safe', 'web:pages:markup'], 'the panel shows markup as text', async () => {
  const hub = await startTestHub()
  await hub.say(`${EVIL[0]}@im`, `dead ${EVIL[1]}`)
  for (const name of EVIL) await hub.register(name, { label: `<b onmouseover=alert(1)>${name}</b>` })
  await hub.say(`${EVIL[0]}@im`, `text ${EVIL[1]}`)
  const { page, problems } = await openPanel(hub, openPage)
  page.on('dialog', (dialog) => problems.push(`dialog: ${dialog.message()}`))
  for (const name of EVIL) {
    await page.getByText(name, { exact: true }).waitFor()
    await page.getByText(`<b onmouseover=alert(1)>${name}</b>`, { exact: true }).waitFor()
  }
  const written = '<svg onload=alert(1)>'
  await registerOnPage(page, written)
  await page.getByRole('heading', { name: `The token of ${written}` }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'Messages' }).click()
  await page.getByText(`text ${EVIL[1]}`).waitFor()
  await page.getByText(`${EVIL[0]}@im`).first().waitFor()
  await page.getByRole('link', { name: 'Conversations' }).click()
  await page.getByText(`text ${EVIL[1]}`).waitFor()
  await page.getByRole('link', { name: 'Dead letters' }).click()
  await page.getByText(`dead ${EVIL[1]}`).waitFor()
  expect(await madeElements(page)).toBe(0)
  expect(problems).toEqual([])
  expect(await page.title()).toBe('Switchboard hub')
})

verifies(['web:pages:policy', 'web:pages:assets'], async () => {
  const hub = await startTestHub({ adminToken: 'secret' })
  for (const token of [undefined, 'secret']) {
    const { headers, text, status } = await hub.call('GET', '/hub/ui', { token })
    expect(status).toBe(token === undefined ? 401 : 200)
    const policy = String(headers.get('content-security-policy'))
    expect(policy).toMatch(/^default-src 'none';/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|\*|https?:/)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(text).not.toMatch(/(src|href)="(https?:)?\/\/|<script(?![^>]*src)|\sstyle=|\son\w+=/)
    const nonce = /style-src 'nonce-([^']+)'/.exec(policy)?.[1]
    const styles = [...text.matchAll(/<style\b([^>]*)>/g)].map(([, more]) => more)
    expect(styles).toEqual(token === undefined ? [` nonce="${nonce}"`] : [])
  }
  const { text } = await hub.call('GET', '/hub/ui', { token: 'secret' })
  const files = [...text.matchAll(/"(\/hub\/ui\/assets\/[^"]+)"/g)].map(([, path]) => String(path))
  expect(files.length).toBeGreaterThanOrEqual(3)
  for (const path of files) {
    expect(path).toMatch(/-[\w-]{8}\.(js|css|svg)$/)
    expect((await hub.call('GET', path)).status).toBe(401)
    const { status, headers } = await hub.call('GET', path, { token: 'secret' })
    expect([status, headers.get('cache-control')]).toEqual([200, 'private, max-age=31536000, immutable'])
    expect(headers.get('content-type')).toMatch(/javascript|css|svg/)
  }
  for (const path of ['../panel.html', '..%2fpanel.html', '%2e%2e/panel.html', '..%5c..%5cpackage.json', '', 'none.js'])
    expect((await hub.call('GET', `/hub/ui/assets/${path}`, { token: 'secret' })).status).toBe(404)
})

verifies(['auth:admin:sign-in-form', 'auth:admin:cookie', 'auth:admin:cookie-counts'], async () => {
  const hub = await startTestHub({ adminToken: 'the-token' })
  await hub.register('earlier')
  const { page, problems } = await openPage()
  const context = page.context()
  const field = page.getByLabel('Admin token')
  const signIn = async (token: string) => {
    await field.fill(token)
    await page.keyboard.press('Enter')
  }
  await page.goto(`${hub.url}/hub/ui`)
  expect(await field.getAttribute('type')).toBe('password')
  expect(await page.content()).not.toContain('earlier')
  await signIn('a wrong one')
  await page.getByRole('alert').getByText('This admin token is wrong.').waitFor()
  expect(await page.content()).not.toContain('a wrong one')
  expect(await context.cookies()).toEqual([])

  await signIn('the-token')
  await page.getByText('earlier').waitFor()
  expect(page.url()).toBe(`${hub.url}/hub/ui`)
  expect(await context.cookies()).toMatchObject([{ httpOnly: true, sameSite: 'Strict', path: '/hub' }])
  expect(await page.evaluate('document.cookie')).toBe('')
  await registerOnPage(page, 'helper')
  expect(await shownToken(page)).toMatch(/^vhub_/)
  await page.keyboard.press('Escape')
  expect(problems.filter((problem) => !problem.includes('401'))).toEqual([])

  await page.getByRole('button', { name: 'Sign out' }).click()
  await field.waitFor()
  expect(await context.cookies()).toEqual([])
  await page.goto(`${hub.url}/hub/ui`)
  await field.waitFor()

  // A session that ends while the page is open leads back to the form.
  await signIn('the-token')
  await page.getByText('earlier').waitFor()
  await context.clearCookies()
  await lookAgain(page)
  await field.waitFor()
  expect(problems.filter((problem) => !problem.includes('401'))).toEqual([])
})

verifies('web:pages:phone', 'the panel and the form fit on a narrow phone', async () => {
  const hub = await startTestHub({ adminToken: 'secret' })
  await hub.register('n'.repeat(64), { label: 'l'.repeat(128) })
  await hub.register('helper', { label: 'Helps people with everything that they need' })
  await hub.say(`${'u'.repeat(80)}@im`, 't'.repeat(300))
  const { page } = await openPage({ viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true })
  for (const width of [360, 320]) {
    await page.setViewportSize({ width, height: 740 })
    await page.context().clearCookies()
    await page.goto(`${hub.url}/hub/ui`)
    expect(await overflow(page)).toBe(0)
    await page.getByLabel('Admin token').fill('secret')
    await page.getByRole('button', { name: 'Sign in' }).tap()
    await page.getByText('n'.repeat(64)).waitFor()
    await registerOnPage(page, `m${width}`.padEnd(64, 'm'))
    await shownToken(page)
    const box = await page.getByRole('dialog').boundingBox()
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(width)
    await page.keyboard.press('Escape')
    for (const part of PARTS) {
      await page.goto(`${hub.url}/hub/ui#/${part}`)
      await page.locator('main section').first().waitFor()
      expect(await overflow(page), part).toBe(0)
    }
  }
})

for (const colorScheme of ['light', 'dark'] as const) {
  verifies('web:pages:accessible', `axe finds nothing serious on the panel in ${colorScheme} mode`, async () => {
    const hub = await startTestHub({ adminToken: 'secret' })
    await hub.say('cat', 'for nobody')
    const token = await hub.register('online', { label: 'there' })
    await hub.register('offline', { fallback: true })
    await hub.call('POST', '/relay/bot/getconfig', { token })
    await hub.say('ann', 'hello')
    const { page } = await openPage({ colorScheme })
    await page.goto(`${hub.url}/hub/ui`)
    expect(await seriousProblems(page)).toEqual([])
    await page.getByLabel('Admin token').fill('secret')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
    for (const part of PARTS) {
      await page.goto(`${hub.url}/hub/ui#/${part}`)
      await page.locator('main :is(td, li, textarea)').first().waitFor()
      expect(await seriousProblems(page), part).toEqual([])
    }
    await page.goto(`${hub.url}/hub/ui#/`)
    await registerOnPage(page, 'offline')
    await page.getByRole('alert').waitFor()
    expect(await seriousProblems(page)).toEqual([])
    await page.getByLabel('Name').fill('third')
    await page.getByRole('button', { name: 'Register', exact: true }).click()
    await page.getByRole('heading', { name: 'The token of third' }).waitFor()
    expect(await seriousProblems(page)).toEqual([])
    const background = String(await page.evaluate('getComputedStyle(document.body).backgroundColor'))
    const [red = 0] = background.match(/\d+/g)?.map(Number) ?? []
    expect(red > 128).toBe(colorScheme === 'light')
  })
}

test('everything on the panel can be done with the keyboard alone', async () => {
  const hub = await startTestHub()
  const { page } = await openPanel(hub, openPage)
  await page.getByText('No client is registered yet').waitFor()
  const active = () => page.evaluate('document.activeElement.textContent')
  for (let tabs = 0; (await active()) !== 'Register a client'; tabs += 1) {
    expect(tabs).toBeLessThan(10)
    await page.keyboard.press('Tab')
  }
  expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.type('helper')
  await page.keyboard.press('Enter')
  expect(await shownToken(page)).toMatch(/^vhub_/)
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('table', { name: 'Clients' }).waitFor()
  expect(await page.getByRole('columnheader').allTextContents()).toEqual([
    'Client',
    'Status',
    'Last seen',
    'Waiting',
    'Last 30 minutes',
    'Actions',
  ])
  expect(await page.locator('html').getAttribute('lang')).toBe('en')
})
