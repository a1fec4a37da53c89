import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { Agent, type Dispatcher } from 'undici'
import { AppError } from '../../kit/errors.ts'
import { sleep, timeLimit } from '../../kit/retry.ts'
import { checker } from '../../kit/schema.ts'
import { GetUpdatesBody } from '../../wire/relay.ts'
import type { FailedRequest } from '../http/errors.ts'
import { emptyBody } from '../http/polls.ts'
import type { Receipts } from '../http/receipts.ts'
import type { Batch } from '../queue.ts'
import { BATCH_HEADER, BATCHES_PATH, type Fate, HOP_HEADER, NOT_LEADING_HEADER } from './hop.ts'

/** Passes calls on to the node that leads. */
export interface Forwarder {
  forward(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** Another node leads: polls that wait at the old one are asked again at the new one. */
  leaderChanged(): void
  /** This node is about to end: polls are answered, empty, from here on. Other calls are passed on as before. */
  drain(): void
  close(): Promise<void>
}

export interface ForwarderOptions {
  /** Where the leader is; waits for one until the signal aborts, then null. */
  leader(signal: AbortSignal): Promise<string | null>
  secret: string
  receipts: Receipts
  /** Whether the caller is on this machine, with no proxy in between. */
  isLocal(request: IncomingMessage): boolean
  errorAnswer(
    error: unknown,
    request: FailedRequest,
  ): { status: number; headers?: Record<string, string>; body: unknown }
}

const NO_LEADER =
  'No node of the hub leads just now: another is taking over, or their database does not answer. Try again in a moment.'
/** A change of leaders takes less; then a poll's client is told to come again. */
const POLL_PATIENCE_MS = 25_000
const CALL_PATIENCE_MS = 20_000
const AGAIN_MS = 100
const checkPoll = checker(GetUpdatesBody)
/** What is shorter is kept until it is answered, so that it can be sent to another leader. */
const MAX_KEPT_BYTES = 2 * 1024 * 1024
const NOT_PASSED_ON = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'host',
  'expect',
  HOP_HEADER,
])

export function openForwarder(options: ForwarderOptions): Forwarder {
  const { leader, secret, receipts, isLocal, errorAnswer } = options
  const agent = new Agent({ connections: null, headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 30_000 })
  const waiting = new Set<AbortController>()
  const drained = new AbortController()

  return {
    async forward(request, response) {
      try {
        await pass(request, response)
      } catch (error) {
        answerFailure(request, response, error)
      }
    },
    leaderChanged() {
      for (const poll of waiting) poll.abort()
    },
    drain: () => drained.abort(),
    close: () => agent.destroy(),
  }

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const waits = isPoll(request)
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const patienceMs = waits ? POLL_PATIENCE_MS : CALL_PATIENCE_MS
    const end = waits ? AbortSignal.any([gone.signal, drained.signal]) : gone.signal
    const patience = timeLimit(patienceMs, end)
    const body = await keepBody(request)
    for (;;) {
      const url = await leader(patience)
      if (waits && drained.signal.aborted) return receipts.write(response, emptyBody(cursorIn(body)), null, true)
      if (url === null) throw noLeader()
      const answer = await ask({ url, request, body, waits, end })
      if (answer !== 'again') return answerWith(answer, url, response)
      if (gone.signal.aborted) return
      if (patience.aborted && !end.aborted) throw noLeader()
      await sleep(AGAIN_MS, patience)
    }
  }

  async function ask({ url, request, body, waits, end }: Question): Promise<Dispatcher.ResponseData | 'again'> {
    const moved = new AbortController()
    if (waits) waiting.add(moved)
    try {
      const answer = await agent.request({
        origin: url,
        path: request.url ?? '/',
        method: methodOf(request),
        headers: headersOf(request),
        body: body ?? request,
        signal: AbortSignal.any([end, moved.signal]),
      })
      if (answer.headers[NOT_LEADING_HEADER] === undefined) return answer
      await answer.body.dump()
      return body === null ? fail() : 'again'
    } catch (error) {
      if (end.aborted) return 'again'
      // Nothing of it can have been done where nobody took the call; a poll and a read may be asked twice.
      const isSafe =
        body !== null && (waits || request.method === 'GET' || request.method === 'HEAD' || !wasTaken(error))
      if (isSafe) return 'again'
      throw noLeader()
    } finally {
      waiting.delete(moved)
    }
  }

  function fail(): never {
    throw noLeader()
  }

  async function answerWith(answer: Dispatcher.ResponseData, url: string, response: ServerResponse): Promise<void> {
    const batchId = answer.headers[BATCH_HEADER]
    if (typeof batchId === 'string') {
      // Our own socket shows whether the client got it; a half that comes from the leader is not passed on.
      const text = await answer.body.text()
      return receipts.write(response, text, remoteBatch(url, batchId), false)
    }
    const headers = Object.entries(answer.headers).filter(([name]) => !NOT_PASSED_ON.has(name))
    response.writeHead(answer.statusCode, Object.fromEntries(headers))
    await pipeline(answer.body, response).catch(() => response.destroy())
  }

  /** Only what becomes of it is told here; the messages are in the answer. */
  function remoteBatch(url: string, id: string): Batch {
    let told: Promise<unknown> = Promise.resolve()
    const tell = (fate: Fate) => {
      told = told.then(() => tellFate(url, id, fate)).catch(() => undefined)
    }
    return { messages: [], toSeq: 0, written: () => tell('written'), lost: () => tell('lost') }
  }

  async function tellFate(url: string, id: string, fate: Fate): Promise<void> {
    const { body } = await agent.request({
      origin: url,
      path: `${BATCHES_PATH}${id}`,
      method: 'POST',
      headers: { [HOP_HEADER]: secret },
      body: fate,
      signal: AbortSignal.timeout(5_000),
    })
    await body.dump()
  }

  function headersOf(request: IncomingMessage): Record<string, string | string[]> {
    const passed: Record<string, string | string[]> = { [HOP_HEADER]: secret }
    for (const [name, value] of Object.entries(request.headers)) {
      if (value !== undefined && !NOT_PASSED_ON.has(name)) passed[name] = value
    }
    if (request.headers.host !== undefined) passed.host = request.headers.host
    if (!isLocal(request)) passed['x-forwarded-for'] ??= request.socket.remoteAddress ?? 'unknown'
    return passed
  }

  function answerFailure(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    if (response.headersSent || response.destroyed) return void response.destroy()
    const { url = '', method = '' } = request
    const { status, headers = {}, body } = errorAnswer(error, { url, method })
    response.writeHead(status, { ...headers, 'content-type': 'application/json; charset=utf-8' })
    response.end(JSON.stringify(body))
  }
}

/** Whether a call is one that may wait for long, and may be asked again. */
export function isPoll({ method, url = '' }: IncomingMessage): boolean {
  return method === 'POST' && /\/bot\/getupdates(\?|$)/.test(url)
}

interface Question {
  url: string
  request: IncomingMessage
  body: Buffer | null
  /** It is a poll. */
  waits: boolean
  /** The caller has gone, or has waited for long enough. */
  end: AbortSignal
}

/** The body, when it is short enough to be sent a second time; null leaves it in the stream. */
async function keepBody(request: IncomingMessage): Promise<Buffer | null> {
  const length = request.headers['content-length']
  if (length === undefined && request.headers['transfer-encoding'] === undefined) return Buffer.alloc(0)
  if (length === undefined || Number(length) > MAX_KEPT_BYTES) return null
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts)
}

/** What a poll brought, as it is to be brought again. */
function cursorIn(body: Buffer | null): string {
  try {
    const { get_updates_buf: cursor } = checkPoll(JSON.parse(String(body ?? '') || '{}'))
    // As it stands inside of a JSON text.
    return JSON.stringify(cursor ?? '').slice(1, -1)
  } catch {
    return ''
  }
}

function methodOf({ method = 'GET' }: IncomingMessage): Dispatcher.HttpMethod {
  return METHODS.find((one) => one === method) ?? 'GET'
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'] as const

const NOT_TAKEN = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT'])

function wasTaken(error: unknown): boolean {
  return !(error instanceof Error && 'code' in error && typeof error.code === 'string' && NOT_TAKEN.has(error.code))
}

function noLeader(): AppError {
  return new AppError('no_leader', NO_LEADER, { retryAfterMs: 2_000 })
}
