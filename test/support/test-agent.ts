import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createParser } from 'eventsource-parser'
import { onTestFinished } from 'vitest'
import { type AgentSettings, parseAgentConfig } from '../../src/agent/config.ts'
import { type RunningAgent, startAgent } from '../../src/agent/main.ts'
import type { RetryOptions } from '../../src/agent/provider/retry.ts'
import type { Script } from '../../src/agent/provider/script-format.ts'
import { type Log, silentLog } from '../../src/kit/log.ts'
import { type DocumentCheck, documentCheck } from './openapi-check.ts'
import type { Answer } from './test-hub.ts'

export interface TestAgentOptions extends Partial<AgentSettings> {
  /** What the model says; the demo model when absent. */
  script?: Script
  /** Where it listens; loopback only when absent. */
  host?: string
  heartbeatMs?: number
  now?: () => number
  log?: Log
  /** The environment of the server, beside PATH: keys and addresses of models. */
  env?: Record<string, string>
  retries?: RetryOptions
}

export interface CallOptions {
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** An event as a client sees it. */
export interface SeenEvent {
  id: number
  event: string
  // biome-ignore lint/suspicious/noExplicitAny: payloads are looked into freely by tests
  data: any
}

/** An open event stream. */
export interface EventReader {
  status: number
  headers: Headers
  /** The next event, or null when the stream has ended. */
  next(): Promise<SeenEvent | null>
  /** Everything up to the first event of this name, or to the end of the stream. */
  until(name: string): Promise<SeenEvent[]>
  /** Comments and `retry` so far. */
  comments: string[]
  retries: number[]
  close(): void
}

export interface TestAgent {
  url: string
  workspace: string
  agent: RunningAgent
  /** Any call; a body that is no string becomes JSON. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  /** A new session's id. */
  session(body?: object): Promise<string>
  /** Starts a run and gives its receipt. */
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely by tests
  run(session: string, goal: string, more?: object): Promise<any>
  /** Runs a goal to its end: its events. */
  finish(session: string, goal: string, more?: object): Promise<SeenEvent[]>
  /** Opens a stream: `/sessions/…/events`, or anything else that answers with one. */
  events(path: string, options?: CallOptions & { method?: string }): Promise<EventReader>
  stop(): Promise<void>
}

/**
 * An agent server with a real port and a workspace of its own, in this process; gone when the test is over. Every answer
 * and event that goes through `call` and `events` is held against the server's own description.
 */
export async function startTestAgent(options: TestAgentOptions = {}): Promise<TestAgent> {
  const { script, host = '127.0.0.1', heartbeatMs, now, log = silentLog, env, retries, ...settings } = options
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'switchboard-agent-')))
  const scripts = mkdtempSync(join(tmpdir(), 'switchboard-script-'))
  const file = join(scripts, 'script.json')
  if (script !== undefined) writeFileSync(file, JSON.stringify(script))
  const { settings: defaults } = parseAgentConfig({}, {})
  const agent = await startAgent(
    {
      ...defaults,
      addr: { host, port: 0 },
      workspace: folder,
      model: script === undefined ? 'demo' : `scripted:${file}`,
      ...settings,
    },
    {
      log,
      env: { PATH: process.env.PATH, ...env },
      version: '0.0.0',
      ...(heartbeatMs === undefined ? {} : { heartbeatMs }),
      ...(now === undefined ? {} : { now }),
      ...(retries === undefined ? {} : { retries }),
    },
  )
  const url = `http://127.0.0.1:${agent.port}`
  const check = documentCheck((settings.authKeys ?? null) !== null)
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= agent.stop()
    return stopped
  }
  onTestFinished(async () => {
    await stop()
    for (const one of [folder, scripts]) rmSync(one, { recursive: true, force: true })
  })

  const send = (method: string, path: string, { body, headers = {}, signal }: CallOptions) =>
    fetch(url + path, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })

  const test: TestAgent = {
    url,
    workspace: folder,
    agent,
    async call(method, path, given = {}) {
      const response = await send(method, path, given)
      const text = await response.text()
      const { status, headers } = response
      const isJson = headers.get('content-type')?.includes('json') && text !== ''
      const body = isJson ? JSON.parse(text) : undefined
      check.answer({ method, path, status, headers, body })
      return { status, headers, text, body }
    },
    async session(body = {}) {
      const answer = await test.call('POST', '/sessions', { body })
      if (answer.status !== 201) throw new Error(`POST /sessions answered ${answer.status}: ${answer.text}`)
      return answer.body.session_id
    },
    async run(session, goal, more = {}) {
      const answer = await test.call('POST', `/sessions/${session}/run`, { body: { goal, ...more } })
      if (answer.status !== 202) throw new Error(`run answered ${answer.status}: ${answer.text}`)
      return answer.body
    },
    async finish(session, goal, more) {
      const { events_url: path } = await test.run(session, goal, more)
      const reader = await test.events(path)
      const events = await reader.until('done')
      reader.close()
      return events
    },
    async events(path, { method = 'GET', ...given } = {}) {
      const gone = new AbortController()
      onTestFinished(() => gone.abort())
      const response = await send(method, path, { ...given, signal: gone.signal })
      const { status, headers } = response
      if (headers.get('content-type')?.startsWith('text/event-stream'))
        check.answer({ method, path, status, headers, body: undefined })
      return readerOf(response, check, () => gone.abort())
    },
    stop,
  }
  return test
}

/** Reads a response with the parser that others use; each event is held against the description. */
function readerOf(response: Response, check: DocumentCheck, close: () => void): EventReader {
  const seen: SeenEvent[] = []
  const comments: string[] = []
  const retries: number[] = []
  const parser = createParser({
    onEvent({ id, event = '', data }) {
      const one = { id: Number(id), event, data: JSON.parse(data) }
      check.event(one.event, one.data)
      seen.push(one)
    },
    onComment: (text) => void comments.push(text),
    onRetry: (ms) => void retries.push(ms),
  })
  const chunks = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  const reader: EventReader = {
    status: response.status,
    headers: response.headers,
    comments,
    retries,
    async next() {
      while (seen.length === 0) {
        const chunk = await chunks?.read()
        if (chunk === undefined || chunk.done) return null
        parser.feed(chunk.value)
      }
      return seen.shift() ?? null
    },
    async until(name) {
      const events: SeenEvent[] = []
      for (let event = await reader.next(); event !== null; event = await reader.next()) {
        events.push(event)
        if (event.event === name) break
      }
      return events
    },
    close,
  }
  return reader
}

/** The names of events, without the deltas between. */
export function namesOf(events: readonly SeenEvent[]): string[] {
  return events.map(({ event }) => event).filter((name) => name !== 'partial_message')
}
