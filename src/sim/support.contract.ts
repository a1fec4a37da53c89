import { Type } from 'typebox'
import { onTestFinished } from 'vitest'
import { silentLog } from '../kit/log.ts'
import { parseLossless } from '../kit/lossless-json.ts'
import { checker } from '../kit/schema.ts'
import { type RunningSim, type SimConfig, startSim } from './main.ts'

/** An answer of the sim. `json` has ids as strings; undefined when the body is not JSON. */
export interface Got {
  status: number
  text: string
  json: unknown
  headers: Headers
}

export interface Updates extends Got {
  cursor: string
  /** The texts of the messages; of one that has none, its JSON. */
  texts: string[]
}

/** A sim on a port of its own, and somebody who calls it over HTTP. */
export interface TestSim extends RunningSim {
  get(path: string): Promise<Got>
  /** A string is sent as it is. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Got>
  delete(path: string): Promise<Got>
  /** A call of the bot protocol under the token of the default bot, or another. */
  bot(endpoint: string, body?: unknown, token?: string): Promise<Got>
  poll(cursor?: string, token?: string): Promise<Updates>
  send(user: string, text: string): Promise<Got>
  /** Resolves once this many polls of the default bot wait. */
  parked(count?: number): Promise<void>
}

export const BOT_TOKEN = '0123456789ab@im.bot:secret'
export const BOT_ID = '0123456789ab@im.bot'

const checkUpdates = checker(
  Type.Object({ ret: Type.Literal(0), msgs: Type.Array(Type.Unknown()), get_updates_buf: Type.String() }),
)
const checkText = Type.Object({
  item_list: Type.Array(Type.Object({ text_item: Type.Object({ text: Type.String() }) })),
})
const readText = checker(checkText)

/** Starts one that stops with the test. */
export async function testSim(config: Partial<SimConfig> = {}): Promise<TestSim> {
  const base = { host: '127.0.0.1', port: 0, botToken: BOT_TOKEN, holdMs: 5_000, log: silentLog }
  const sim = await startSim({ ...base, ...config })
  onTestFinished(() => sim.stop())
  const post = (path: string, body: unknown, headers = {}) =>
    call(sim.url + path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), headers })
  const bot = (endpoint: string, body: unknown = {}, token = BOT_TOKEN) =>
    post(`/ilink/bot/${endpoint}`, body, { authorization: `Bearer ${token}` })
  return {
    ...sim,
    post,
    bot,
    get: (path) => call(sim.url + path, {}),
    delete: (path) => call(sim.url + path, { method: 'DELETE' }),
    async poll(cursor = '', token = BOT_TOKEN) {
      const got = await bot('getupdates', { get_updates_buf: cursor, base_info: { channel_version: '1' } }, token)
      const { msgs, get_updates_buf } = checkUpdates(got.json)
      return { ...got, cursor: get_updates_buf, texts: msgs.map(textOrJson) }
    },
    send: (user, text) => bot('sendmessage', sendBody(user, text)),
    async parked(count = 1) {
      while (sim.control.state().polls_in_flight !== count) await new Promise(setImmediate)
    },
  }
}

/** A body for `sendmessage`. */
export function sendBody(user: string, text: string) {
  const msg = { from_user_id: '', to_user_id: `${user}@im.wechat`, client_id: 'c1', message_type: 2, message_state: 2 }
  return { msg: { ...msg, context_token: 'ctx', item_list: [{ type: 1, text_item: { text } }] } }
}

async function call(url: string, init: RequestInit): Promise<Got> {
  const answer = await fetch(url, init)
  const text = await answer.text()
  return { status: answer.status, text, json: parse(text), headers: answer.headers }
}

function parse(text: string): unknown {
  try {
    return parseLossless(text)
  } catch {
    return undefined
  }
}

function textOrJson(message: unknown): string {
  try {
    return readText(message).item_list[0]?.text_item.text ?? ''
  } catch {
    return JSON.stringify(message)
  }
}
