import type { BrowserContextOptions, Page } from 'playwright-core'
import type { TestPage } from './browser.ts'
import type { TestHub } from './test-hub.ts'

const LOOK_MS = 3_000

/** Opens the panel and waits until it shows the hub's state. */
export async function openPanel(
  hub: TestHub,
  openPage: (options?: BrowserContextOptions) => Promise<TestPage>,
  { part = '', ...options }: BrowserContextOptions & { part?: string } = {},
): Promise<TestPage> {
  const opened = await openPage(options)
  await opened.page.goto(`${hub.url}/hub/ui#/${part}`)
  await opened.page.getByText('Connected', { exact: true }).waitFor()
  return opened
}

/** Hurries the page to its next look at the hub. */
export const lookAgain = (page: Page) => page.clock.fastForward(LOOK_MS)

/** Opens the form, fills it in and sends it. */
export async function registerOnPage(page: Page, name: string, label = ''): Promise<void> {
  await page.getByRole('button', { name: 'Register a client' }).click()
  const form = page.getByRole('dialog', { name: 'Register a client' })
  await form.getByLabel('Name').fill(name)
  await form.getByLabel('Label').fill(label)
  await form.getByRole('button', { name: 'Register' }).click()
}

/** The token that the page shows now. */
export async function shownToken(page: Page): Promise<string> {
  const dialog = page.getByRole('dialog', { name: /^The token of/ })
  return (await dialog.locator('pre').first().textContent()) ?? ''
}

/** How much wider than the window the page is. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}
