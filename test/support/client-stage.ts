import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { freePort, type Program, runCli, temporaryFolder, untilAnswers } from './processes.ts'
import { until } from './test-hub.ts'

/** The published clients that are run, unmodified, as processes of their own. */
export const REAL_CLIENTS = ['weixin-bot-sdk', 'weixin-clawbot'] as const
export type RealClientName = (typeof REAL_CLIENTS)[number]

/** What the clients' programs in `test/e2e/clients/` print. */
export interface Seen {
  event: 'started' | 'message' | 'image' | 'failed' | 'error' | 'expired' | 'stopped'
  at: number
  text?: string
  type?: string
  sha256?: string
  bytes?: number
  raw?: Record<string, unknown>
}

/** A client that runs. */
export interface RealClient {
  readonly child: ChildProcess
  seen(event: Seen['event']): Seen[]
  isRunning(): boolean
  kill(): Promise<void>
}

/** A hub and a sim as real processes, on ports and a data directory that outlive a restart of the hub. */
export interface Stage {
  readonly hubUrl: string
  readonly simUrl: string
  readonly hub: Program
  killHub(): Promise<void>
  startHub(): Promise<void>
  register(name: string): Promise<string>
  /** Any JSON call to the hub. */
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely by tests
  hubCall(method: string, path: string, body?: unknown): Promise<any>
  // biome-ignore lint/suspicious/noExplicitAny: as above
  simCall(method: string, path: string, body?: unknown): Promise<any>
  say(user: string, text: string): Promise<void>
  /** What the user saw from the bot so far. */
  answers(user: string): Promise<string[]>
  isTyping(user: string): Promise<boolean>
  /** The value of a figure of the hub; with labels as they stand in the text, e.g. `polls_total{answer="empty"}`. */
  figure(name: string): Promise<number>
  /** Waits until the client is online. */
  online(name: string): Promise<void>
  /** Waits until nothing waits for the client, and a poll is there again. */
  settled(name: string): Promise<void>
}

export const WAIT_MS = 40_000
const MIB = 1024 * 1024
const BOT_TOKEN = 'stage@im.bot:secret'

/** Starts a sim and a hub in front of it; both end with the test. */
export async function openStage(hubFlags: string[] = []): Promise<Stage> {
  const [hubPort, simPort] = [await freePort(), await freePort()]
  const dataDir = temporaryFolder()
  const hubUrl = `http://127.0.0.1:${hubPort}`
  const simUrl = `http://127.0.0.1:${simPort}`
  const sim = runCli(['sim', '--addr', `127.0.0.1:${simPort}`, '--bot-token', BOT_TOKEN, '--log-level', 'error'])
  await untilAnswers(`${simUrl}/health`, sim, WAIT_MS)
  const upstream = ['--upstream-url', simUrl, '--upstream-token', BOT_TOKEN]
  const flags = ['--addr', `127.0.0.1:${hubPort}`, '--data-dir', dataDir, ...upstream, '--log-level', 'error']
  const launch = async () => {
    const started = runCli(['hub', ...flags, '--poll-hold-ms', '1000', ...hubFlags])
    await untilAnswers(`${hubUrl}/ready`, started, WAIT_MS)
    return started
  }
  let hub = await launch()
  const hubCall: Stage['hubCall'] = (method, path, body) => call(method, hubUrl + path, body)
  const simCall: Stage['simCall'] = (method, path, body) => call(method, simUrl + path, body)
  const figure: Stage['figure'] = async (name) => {
    const text = await (await fetch(`${hubUrl}/metrics`)).text()
    const line = text.split('\n').find((one) => one.startsWith(`switchboard_hub_${name} `))
    return Number(line?.split(' ').at(-1) ?? 0)
  }

  return {
    hubUrl,
    simUrl,
    get hub() {
      return hub
    },
    killHub: () => hub.kill(),
    async startHub() {
      hub = await launch()
    },
    async register(name) {
      return (await hubCall('POST', '/hub/register', { name })).token
    },
    hubCall,
    simCall,
    async say(user, text) {
      await simCall('POST', '/sim/say', { user, text })
    },
    async answers(user) {
      const { messages } = await simCall('GET', `/sim/conversation?user=${user}`)
      return messages.filter(({ from }: { from: string }) => from === 'bot').map(({ text }: { text: string }) => text)
    },
    isTyping: async (user) => (await simCall('GET', `/sim/conversation?user=${user}`)).typing,
    figure,
    online: (name) => until(async () => (await hubCall('GET', `/hub/clients/${name}`)).status === 'online', WAIT_MS),
    settled: (name) =>
      until(async () => {
        const { queue_size: waiting } = await hubCall('GET', `/hub/clients/${name}`)
        return waiting === 0 && (await figure('parked_polls')) > 0
      }, WAIT_MS),
  }
}

/** The bytes of the newest image that the bot sent. */
export async function imageOf({ simCall, simUrl }: Stage, user: string): Promise<Buffer> {
  const { messages } = await simCall('GET', `/sim/conversation?user=${user}`)
  const { message_id: id } = messages.findLast(({ from }: { from: string }) => from === 'bot')
  const response = await fetch(`${simUrl}/sim/media?user=${user}&message_id=${id}`)
  return Buffer.from(await response.arrayBuffer())
}

/** How much more memory a process had at its peak during `work` than before it, in MiB. */
export async function memoryDuring({ child: { pid } }: Program, work: () => Promise<void>): Promise<number> {
  const read = (field: string) =>
    Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  writeFileSync(`/proc/${pid}/clear_refs`, '5') // the peak starts anew
  const before = read('VmRSS')
  await work()
  return (read('VmHWM') - before) / MIB
}

/** Runs one of the clients with its own way of being told the address and the token; killed when the test is over. */
export function runClient(
  name: RealClientName,
  { hubUrl, cdnUrl, token, folder }: { hubUrl: string; cdnUrl: string; token: string; folder: string },
): RealClient {
  const credentials = join(folder, 'credentials.json')
  writeFileSync(credentials, JSON.stringify({ botToken: token, baseUrl: hubUrl }))
  const program = fileURLToPath(new URL(`../e2e/clients/${name}.mjs`, import.meta.url))
  const child = spawn(process.execPath, [program], {
    env: {
      PATH: process.env.PATH ?? '',
      CLIENT_CREDENTIALS: credentials,
      CLIENT_CDN_URL: cdnUrl,
      WEIXIN_CLAWBOT_TOKEN: token,
      WEIXIN_CLAWBOT_BASE_URL: hubUrl,
      WEIXIN_CLAWBOT_STATE_ROOT: folder,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  child.stdout?.on('data', (chunk) => (printed += String(chunk)))
  const ended = once(child, 'exit')
  const isRunning = () => child.exitCode === null && child.signalCode === null
  const kill = async () => {
    if (isRunning()) child.kill('SIGKILL')
    await ended
  }
  onTestFinished(kill)
  const seen: RealClient['seen'] = (event) => {
    const whole = printed.slice(0, printed.lastIndexOf('\n') + 1)
    const lines: Seen[] = whole.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
    return lines.filter((line) => line.event === event)
  }
  return { child, seen, isRunning, kill }
}

async function call(method: string, url: string, body: unknown): Promise<unknown> {
  const response = await fetch(url, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${new URL(url).pathname} answered ${response.status}: ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}
