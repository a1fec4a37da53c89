import type { Page } from 'playwright-core'
import { expect, test, vi } from 'vitest'
import { testBrowser } from '../support/browser.ts'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

// A browser takes its time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const REFRESH_MS = 3_000
const openPage = testBrowser()

/** The rows of the client list, cell by cell, once there are so many. */
async function rowsOf(page: Page, count: number): Promise<string[][]> {
  const rows = page.locator('#clients tr')
  await rows.nth(count - 1).waitFor()
  const all = await rows.all()
  return Promise.all(all.map((row) => row.locator('td').allTextContents()))
}

/** Hurries the page to its next look at the hub. */
const lookAgain = (page: Page) => page.clock.fastForward(REFRESH_MS)

async function openPanel(hub: TestHub, options = {}) {
  const opened = await openPage(options)
  await opened.page.goto(`${hub.url}/hub/ui`)
  await opened.page.getByText('Connected', { exact: true }).waitFor()
  return opened
}

async function registerOnPage(page: Page, name: string, label = ''): Promise<void> {
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Label').fill(label)
  await page.getByRole('button', { name: 'Register' }).click()
}

verifies('hub:ui:page', async () => {
  const hub = await startTestHub()
  const { headers, status } = await hub.call('GET', '/hub/ui')
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  const { page, problems } = await openPanel(hub)
  await page.getByText('No client is registered yet').waitFor()
  expect(await page.getByRole('table').count()).toBe(0)

  // It follows what happens.
  const token = await hub.register('helper', { label: 'Helps' })
  await lookAgain(page)
  expect(await rowsOf(page, 1)).toEqual([['helper', 'Helps', 'offline', expect.stringMatching(/^\d+ s ago$/), '0']])
  await hub.register('other')
  await hub.say('ann', 'one')
  await hub.say('ann', 'two')
  await hub.call('POST', '/relay/bot/getconfig', { token })
  await lookAgain(page)
  const [helper, other] = await rowsOf(page, 2)
  expect(helper?.slice(0, 3)).toEqual(['helper', 'Helps', 'online'])
  expect(helper?.[4]).toBe('2')
  expect(other?.slice(0, 3)).toEqual(['other', '', 'offline'])
  await page.getByText('1 of 2 online').waitFor()
  await hub.call('DELETE', '/hub/clients/helper')
  await lookAgain(page)
  await page.getByText('0 of 1 online').waitFor()
  expect((await rowsOf(page, 1)).map(([name]) => name)).toEqual(['other'])

  hub.sim.control.faults.add({ kind: 'down' })
  await until(() => !hub.hub.link.isUp())
  await lookAgain(page)
  await page.getByText(/^Not connected: ./).waitFor()
  await page.getByText('The hub keeps trying').waitFor()
  hub.sim.control.faults.clear()
  await until(() => hub.hub.link.isUp())
  await lookAgain(page)
  await page.getByText('Connected', { exact: true }).waitFor()
  expect(problems).toEqual([])
})

test('a hub that went away is told, and found again', async () => {
  const hub = await startTestHub()
  const { page } = await openPanel(hub)
  await page.context().setOffline(true)
  await lookAgain(page)
  await page.getByText(/^The hub does not answer: ./).waitFor()
  await page.context().setOffline(false)
  await lookAgain(page)
  await page.getByText('Connected', { exact: true }).waitFor()
})

verifies('hub:ui:register', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const { page, problems } = await openPanel(hub)
  await registerOnPage(page, ' helper ', 'Helps')
  const issued = page.locator('#issued')
  const token = (await issued.locator('code').first().textContent()) ?? ''
  expect(token).toMatch(/^vhub_[0-9a-f]{32}$/)
  expect(await issued.textContent()).toContain('shown this once')
  expect(await issued.textContent()).toContain(hub.url)
  expect((await hub.poll(token)).status).toBe(200)
  expect((await rowsOf(page, 1))[0]?.slice(0, 2)).toEqual(['helper', 'Helps'])
  expect(await page.getByLabel('Name').inputValue()).toBe('')
  expect(problems).toEqual([])

  // A mistake afterwards does not take the token away, and neither does the next client.
  await registerOnPage(page, 'HELPER')
  await page
    .getByRole('alert')
    .getByText('A client named "HELPER" is registered already; choose another name.')
    .waitFor()
  expect(await page.getByLabel('Name').inputValue()).toBe('HELPER')
  expect(await page.getByLabel('Name').getAttribute('aria-invalid')).toBe('true')
  await registerOnPage(page, 'second')
  await issued.getByText('second').waitFor()
  expect(await page.getByRole('alert').isVisible()).toBe(false)
  expect(await issued.textContent()).toContain(token)

  await page.reload()
  await rowsOf(page, 2)
  expect(await page.content()).not.toContain('vhub_')
  expect(
    await page.evaluate('JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])'),
  ).not.toContain('vhub_')
})

test('pressing Register twice registers once', async () => {
  const hub = await startTestHub()
  const { page, problems } = await openPanel(hub)
  await page.getByLabel('Name').fill('helper')
  await page.getByRole('button', { name: 'Register' }).dblclick()
  await page.locator('#issued code').first().waitFor()
  expect(await rowsOf(page, 1)).toHaveLength(1)
  expect(await page.getByRole('alert').isVisible()).toBe(false)
  expect(problems).toEqual([])
})

verifies('hub:ui:safe', async () => {
  const hub = await startTestHub()
  const evil = ['<img src=x onerror="document.title=1">', '</td></tr><script>document.title=2</script>', '{{7*7}}`\'"']
  for (const name of evil) await hub.register(name, { label: `<b onmouseover=alert(1)>${name}</b>` })
  const { page, problems } = await openPanel(hub)
  page.on('dialog', (dialog) => problems.push(`dialog: ${dialog.message()}`))
  const rows = await rowsOf(page, evil.length)
  expect(rows.map(([name]) => name).sort()).toEqual([...evil].sort())
  expect(rows.map(([, label]) => label).sort()).toEqual(
    evil.map((name) => `<b onmouseover=alert(1)>${name}</b>`).sort(),
  )
  const written = '<svg onload=alert(1)>'
  await registerOnPage(page, written)
  await page.locator('#issued strong').getByText(written).waitFor()
  expect(problems).toEqual([])
  // Also in the text of an error.
  await registerOnPage(page, written)
  await page.getByRole('alert').getByText(`A client named "${written}" is registered already`).waitFor()
  expect(problems.filter((problem) => !problem.includes('409'))).toEqual([])
  expect(await page.locator('main :is(img, b, svg, script)').count()).toBe(0)
  expect(await page.title()).toBe('Switchboard hub')
})

test('the page allows nothing but itself', async () => {
  const hub = await startTestHub({ adminToken: 'secret' })
  for (const token of [undefined, 'secret']) {
    const { headers, text } = await hub.call('GET', '/hub/ui', { token })
    const policy = String(headers.get('content-security-policy'))
    const nonce = /script-src 'nonce-([^']+)'/.exec(policy)?.[1] ?? ''
    expect(nonce.length).toBeGreaterThanOrEqual(22)
    expect(policy).toMatch(/^default-src 'none';/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|\*|https?:/)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('no-store')
    expect([...text.matchAll(/<(?:script|style)\b([^>]*)>/g)].map(([, more]) => more)).toSatisfy((all: string[]) =>
      all.every((more) => more === ` nonce="${nonce}"`),
    )
    expect(text).not.toMatch(/(src|href)="(https?:)?\/\//)
    expect((await hub.call('GET', '/hub/ui', { token })).headers.get('content-security-policy')).not.toBe(policy)
  }
})

verifies(['auth:admin:sign-in-form', 'auth:admin:cookie', 'auth:admin:cookie-counts'], async () => {
  const hub = await startTestHub({ adminToken: 'the-token' })
  const { page, problems } = await openPage()
  const context = page.context()
  const field = page.getByLabel('Admin token')
  const signIn = async (token: string) => {
    await field.fill(token)
    await page.keyboard.press('Enter')
  }
  await page.goto(`${hub.url}/hub/ui`)
  expect(await field.getAttribute('type')).toBe('password')
  await signIn('a wrong one')
  await page.getByRole('alert').getByText('This admin token is wrong.').waitFor()
  expect(await page.content()).not.toContain('a wrong one')
  expect(await context.cookies()).toEqual([])

  await signIn('the-token')
  await page.getByText('Connected', { exact: true }).waitFor()
  expect(page.url()).toBe(`${hub.url}/hub/ui`)
  expect(await context.cookies()).toMatchObject([{ httpOnly: true, sameSite: 'Strict', path: '/hub' }])
  expect(await page.evaluate('document.cookie')).toBe('')
  await registerOnPage(page, 'helper')
  await page.locator('#issued code').first().waitFor()
  expect(problems.filter((problem) => !problem.includes('401'))).toEqual([])

  await page.getByRole('button', { name: 'Sign out' }).click()
  await field.waitFor()
  expect(await context.cookies()).toEqual([])
  await page.goto(`${hub.url}/hub/ui`)
  await field.waitFor()

  // A session that ends while the page is open leads back to the form.
  await signIn('the-token')
  await rowsOf(page, 1)
  await context.clearCookies()
  await lookAgain(page)
  await field.waitFor()
  expect(problems.filter((problem) => !problem.includes('401'))).toEqual([])
})

test('the panel and the form fit on a narrow phone', async () => {
  const viewport = { width: 360, height: 740 }
  const hub = await startTestHub({ adminToken: 'secret' })
  await hub.register('n'.repeat(64), { label: 'l'.repeat(128) })
  await hub.register('helper', { label: 'Helps people with everything that they need' })
  const { page } = await openPage({ viewport, isMobile: true, hasTouch: true })
  const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
  for (const width of [360, 320]) {
    await page.setViewportSize({ width, height: 740 })
    await page.context().clearCookies()
    await page.goto(`${hub.url}/hub/ui`)
    expect(await page.evaluate(overflow)).toBe(0)
    await page.getByLabel('Admin token').fill('secret')
    await page.getByRole('button', { name: 'Sign in' }).tap()
    await rowsOf(page, 2)
    await registerOnPage(page, `m${width}`.padEnd(64, 'm'))
    await page.locator('#issued code').first().waitFor()
    expect(await page.evaluate(overflow)).toBe(0)
    // Nothing is cut off inside a card either.
    for (const cell of await page.locator('td:not(:empty), #issued *, button, input:not([hidden])').all()) {
      const box = await cell.boundingBox()
      expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(width)
    }
  }
})

test.each(['light', 'dark'] as const)('in %s mode every text can be read', async (colorScheme) => {
  const hub = await startTestHub()
  const token = await hub.register('online', { label: 'there' })
  await hub.register('offline')
  await hub.call('POST', '/relay/bot/getconfig', { token })
  const { page } = await openPanel(hub, { colorScheme })
  await rowsOf(page, 2)
  await registerOnPage(page, 'offline')
  await page.getByRole('alert').waitFor()
  await registerOnPage(page, 'third')
  await page.locator('#issued code').first().waitFor()
  const background = (await colour(page, 'body', 'backgroundColor')).reduce((sum, part) => sum + part) / 3
  expect(background > 128).toBe(colorScheme === 'light')
  const card = await colour(page, 'section', 'backgroundColor')
  for (const selector of [
    'h1 span',
    'h2',
    '#health',
    '#count',
    'th',
    'td.soft',
    'td.good',
    'label',
    '#problem',
    '#issued code',
    '.quiet',
  ])
    expect(contrast(await colour(page, selector, 'color'), card), selector).toBeGreaterThanOrEqual(4.5)
  const button = await colour(page, '#register button', 'backgroundColor')
  expect(contrast(await colour(page, '#register button', 'color'), button)).toBeGreaterThanOrEqual(4.5)
})

test('everything has a name and can be done with the keyboard alone', async () => {
  const hub = await startTestHub()
  const { page } = await openPanel(hub)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.keyboard.press('Tab')
  await page.keyboard.type('helper')
  await page.keyboard.press('Tab')
  await page.keyboard.type('Helps')
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Register')
  expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid')
  await page.keyboard.press('Enter')
  const token = await page.locator('#issued code').first().textContent()
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Copy the token of helper')
  await page.keyboard.press('Space')
  await page.getByText('Copied').waitFor()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(token)

  await page.getByRole('table', { name: /^Clients/ }).waitFor()
  expect(await page.getByRole('columnheader').allTextContents()).toEqual([
    'Name',
    'Label',
    'Status',
    'Last seen',
    'Waiting',
  ])
  expect(await page.getByRole('cell').first().textContent()).toBe('helper')
  expect(await page.getByRole('heading').allTextContents()).toHaveLength(4)
  expect(await page.locator('html').getAttribute('lang')).toBe('en')
  for (const name of ['Messaging service', 'Register a client']) await page.getByRole('region', { name }).waitFor()
})

type Rgb = [number, number, number]

async function colour(page: Page, selector: string, property: string): Promise<Rgb> {
  const element = JSON.stringify(selector)
  const text = String(await page.evaluate(`getComputedStyle(document.querySelector(${element})).${property}`))
  const [red = 0, green = 0, blue = 0] = text.match(/[\d.]+/g)?.map(Number) ?? []
  return [red, green, blue]
}

/** As WCAG 2 reckons it. */
function contrast(a: Rgb, b: Rgb): number {
  const luminance = (rgb: Rgb) => {
    const [red = 0, green = 0, blue = 0] = rgb.map((part) => {
      const share = part / 255
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((one, other) => one - other)
  return (light + 0.05) / (dark + 0.05)
}
