// Makes docs/images/*.png from the running system, so that the pictures in the docs stay true: npm run screenshots
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { launchChromium } from '../test/support/chromium.ts'

const IMAGES = process.argv[2] ?? fileURLToPath(new URL('../docs/images/', import.meta.url))
const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url))
const LOOKS: Record<string, BrowserContextOptions> = {
  light: { colorScheme: 'light', viewport: { width: 1200, height: 760 } },
  dark: { colorScheme: 'dark', viewport: { width: 1200, height: 760 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 760 }, deviceScaleFactor: 1.5 },
}
const WAIT_MS = 60_000
const BOT_TOKEN = 'sim@im.bot:for-pictures'
const FILES: Record<string, string> = {
  'README.md': '# Garden\n\nWhat grows where, and when to water it.\n',
  'beds.csv': 'bed,plant\n1,beans\n2,kale\n',
  'water.txt': 'Mondays and Thursdays\n',
}

const folder = mkdtempSync(join(tmpdir(), 'switchboard-screenshots-'))
const workspace = join(folder, 'work')
const running: ChildProcess[] = []
const ports = { sim: await freePort(), hub: await freePort(), agent: await freePort() }
const sim = `http://127.0.0.1:${ports.sim}`
const hub = `http://127.0.0.1:${ports.hub}`
const agent = `http://127.0.0.1:${ports.agent}`
const browser = await launchChromium()
try {
  mkdirSync(IMAGES, { recursive: true })
  mkdirSync(workspace)
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(workspace, name), text)
  start('sim', '--addr', `127.0.0.1:${ports.sim}`, '--bot-token', BOT_TOKEN)
  start('agent', '--addr', `127.0.0.1:${ports.agent}`, '--workspace', workspace, '--model', 'demo')
  await answers(`${sim}/health`)
  const upstream = ['--upstream-url', sim, '--upstream-token', BOT_TOKEN]
  start('hub', '--addr', `127.0.0.1:${ports.hub}`, '--data-dir', join(folder, 'hub'), ...upstream)
  await answers(`${hub}/health`)
  await answers(`${agent}/health`)
  await story()
  await shootAll()
} finally {
  await browser.close()
  for (const one of running) one.kill('SIGTERM')
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

/** Something of everything, so that the pictures have something to show. */
async function story(): Promise<void> {
  await post(`${sim}/sim/say`, { user: 'dan', text: 'Is anybody there yet?' })
  await until(async () => (await get(`${hub}/hub/dead-letters`)).total > 0)
  const where = ['--hub-url', hub, '--agent-url', agent, '--data-dir', join(folder, 'bridge')]
  start('bridge', '--name', 'gardener', ...where)
  await until(async () => (await get(`${hub}/hub/clients`)).online > 0)
  await post(`${hub}/hub/register`, { name: 'night-watch', label: 'Answers when nobody else is there', fallback: true })
  for (const [user, text] of [
    ['ann', 'list files'],
    ['bob', 'read water.txt'],
    ['ann', 'search for kale'],
    ['cat', '@night-watch are you awake?'],
    ['bob', '/list'],
  ] as const) {
    await post(`${sim}/sim/say`, { user, text })
    await until(async () => (await get(`${sim}/sim/conversation?user=${user}`)).messages.at(-1).from === 'bot')
  }
  const made = await post(`${agent}/sessions`, { title: 'Plan the spring' })
  await post(`${agent}/sessions/${made.session_id}/run`, { goal: 'plan: sow beans in March, kale in April' })
  await until(async () => (await get(`${agent}/sessions/${made.session_id}`)).status === 'awaiting_plan')
}

async function shootAll(): Promise<void> {
  const sessions: { session_id: string; status: string }[] = await get(`${agent}/sessions`)
  const planned = sessions.find(({ status }) => status === 'awaiting_plan')?.session_id
  const talked = sessions.find(({ status }) => status === 'idle')?.session_id
  await shoot('panel-clients', `${hub}/hub/ui`, 'gardener')
  await shoot('panel-messages', `${hub}/hub/ui#/messages`, 'list files')
  await shoot('panel-conversations', `${hub}/hub/ui#/conversations`, 'ann@im.wechat')
  await shoot('panel-dead-letters', `${hub}/hub/ui#/dead-letters`, 'Is anybody there yet?')
  await shoot('console-session', `${agent}/ui#/${talked}`, 'Done.', (page) => page.locator('summary').first().click())
  await shoot('console-plan', `${agent}/ui#/${planned}`, 'The agent proposes a plan')
  await shoot('chat', `${sim}/`, 'list files')
}

async function shoot(name: string, url: string, text: string, act?: (page: Page) => Promise<void>): Promise<void> {
  for (const [look, options] of Object.entries(LOOKS)) {
    const context = await browser.newContext({ ...options, reducedMotion: 'reduce', locale: 'en-GB' })
    const page = await context.newPage()
    await page.goto(url)
    await page.getByText(text).first().waitFor()
    await act?.(page)
    await page.screenshot({ path: join(IMAGES, `${name}-${look}.png`) })
    await context.close()
  }
}

function start(...args: string[]): void {
  running.push(spawn(process.execPath, [CLI, ...args], { stdio: 'ignore', cwd: folder }))
}

async function get(url: string) {
  return JSON.parse(await (await fetch(url)).text())
}

async function post(url: string, body: object) {
  return JSON.parse(await (await fetch(url, { method: 'POST', body: JSON.stringify(body) })).text())
}

async function answers(url: string): Promise<void> {
  await until(async () => (await fetch(url).catch(() => null))?.ok === true)
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + WAIT_MS
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('waited in vain')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
