import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { LAUNCH_MS, launchChromium } from './chromium.ts'

/** A page, and everything that its browser had to complain of. */
export interface TestPage {
  page: Page
  /** Console errors, thrown errors and violations of the content security policy. */
  problems: string[]
}

const WAIT_MS = 15_000

/** A Chromium for all tests of a file. The returned function opens a page with nothing in its store. */
export function testBrowser(): (options?: BrowserContextOptions) => Promise<TestPage> {
  let browser: Browser | undefined
  beforeAll(async () => {
    browser = await launchChromium()
  }, LAUNCH_MS)
  afterAll(() => browser?.close())

  return async (options = {}) => {
    if (browser === undefined) throw new Error('the browser did not start')
    const context = await browser.newContext(options)
    onTestFinished(() => context.close())
    context.setDefaultTimeout(WAIT_MS)
    const problems: string[] = []
    const page = await context.newPage()
    // The page's own clock goes on by itself; a test can hurry it.
    await page.clock.install()
    page.on('pageerror', (error) => problems.push(`thrown: ${error.message}`))
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
    })
    await page.addInitScript(
      `addEventListener('securitypolicyviolation', (event) => console.error('policy: ' + event.violatedDirective))`,
    )
    return { page, problems }
  }
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe finds serious or critical on the page as it stands: rule and places. */
export async function seriousProblems(page: Page): Promise<string[]> {
  // Through the debugger, which no content security policy holds back.
  await page.evaluate(`window.axe === undefined && (() => { ${AXE} })()`)
  const found: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[] =
    await page.evaluate(`axe.run(document).then(({ violations }) => violations)`)
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} at ${target.join(' ')}: ${failureSummary}`),
    )
}

/** Every text the page shows, and the elements that foreign markup would have made of it. */
export function madeElements(page: Page): Promise<number> {
  return page
    .locator('#app :is(script, iframe, object, marquee, [onerror], [onload], [onmouseover], img[src=x])')
    .count()
}
