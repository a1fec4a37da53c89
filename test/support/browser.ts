import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, onTestFinished } from 'vitest'

/** A page, and everything that its browser had to complain of. */
export interface TestPage {
  page: Page
  /** Console errors, thrown errors and violations of the content security policy. */
  problems: string[]
}

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
const LAUNCH_MS = 60_000
const WAIT_MS = 15_000

/** A Chromium for all tests of a file. The returned function opens a page with nothing in its store. */
export function testBrowser(): (options?: BrowserContextOptions) => Promise<TestPage> {
  let browser: Browser | undefined
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: findChromium(), args: ARGS, timeout: LAUNCH_MS })
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

/** `TEST_CHROMIUM`, or the first Chromium on the PATH, as scripts/test-setup.mjs looks for it. */
function findChromium(): string {
  const given = process.env.TEST_CHROMIUM
  if (given) return given
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  const paths = ['chromium', 'chromium-browser', 'google-chrome'].flatMap((name) =>
    folders.map((folder) => join(folder, name)),
  )
  const found = paths.find(isProgram)
  if (found === undefined) throw new Error('There is no Chromium on the PATH; install one or set TEST_CHROMIUM.')
  return found
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
