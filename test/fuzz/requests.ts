import type { Dice } from '../support/dice.ts'
import type { Delivery } from './exchange.ts'
import type { Operation } from './operations.ts'
import { anyBody, NASTY_TEXTS } from './values.ts'

/** A request as it goes over the wire. */
export interface HostileRequest {
  method: string
  path: string
  /** HTTP as it should be, whatever it says: an answer has to come, and one that is documented. */
  isHttp: boolean
  /** Nobody waits for the answer, so whether it was carried out is not known. */
  isLost: boolean
  delivery: Delivery
  /** To tell what was sent. */
  text: string
}

export interface Door {
  port: number
  /** The header lines that open the server for this path; others are tried as well. */
  credentials: (path: string) => string
  /** Values that exist, for the parts of paths. */
  known: () => readonly string[]
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'] as const
const TYPES = [
  'application/json',
  'application/json; charset=utf-8',
  'application/json; charset=utf-16',
  'text/plain',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  ';;;',
  'x'.repeat(500),
] as const
const ODD_HEADERS = [
  'accept: text/event-stream',
  'accept: application/xml',
  'accept: ;q=',
  'expect: 100-continue',
  'expect: fuzz',
  'content-encoding: gzip',
  'last-event-id: 99999999999999999999',
  'last-event-id: x',
  'idempotency-key: ',
  `idempotency-key: ${'k'.repeat(1000)}`,
  'idempotency-key: fuzz',
  'origin: http://evil.example',
  'x-forwarded-for: 127.0.0.1',
  'x-request-id: fuzz"} 1',
  'authorization: Bearer',
  'authorization: Basic Zm9vOmJhcg==',
  'cookie: a=b; =; ;;',
  'range: bytes=0-99999',
  'upgrade: websocket',
  'connection: upgrade',
  'accept-encoding: gzip, br, *;q=0',
  'if-none-match: *',
] as const
/** Not HTTP, or no longer: it may be refused in any way that hurts nobody. */
const BROKEN: readonly [() => string, ...(() => string)[]] = [
  () => `x-big: ${'y'.repeat(40_000)}`,
  () => Array.from({ length: 3_000 }, (_, index) => `x-${index}: 1`).join('\r\n'),
  () => 'content-length: 5\r\ncontent-length: 6',
  () => 'content-length: -1',
  () => 'content-length: 99999999999999999999',
  () => 'content-length: 4\r\ntransfer-encoding: chunked',
  () => 'transfer-encoding: gzip, chunked, x',
  () => 'no colon here',
  () => ': no name',
  () => 'x-nul: a\u0000b',
  () => 'host: a\r\nhost: b',
  () => ' folded: yes',
]
const WITHIN_MS = 30_000

/** Any request to this operation: right, wrong in one way, or broken. */
export function anyRequest(operation: Operation, door: Door, dice: Dice): HostileRequest {
  const method = dice.chance(0.85) ? operation.method : dice.pick(METHODS)
  const path = anyPath(operation, door, dice)
  const isBroken = dice.chance(0.12)
  const body = operation.body !== undefined || dice.chance(0.1) ? anyBody(operation.body, dice) : Buffer.alloc(0)
  const isChunked = body.length > 0 && dice.chance(0.2)
  const head = [
    `${method} ${path} HTTP/1.1`,
    `host: 127.0.0.1:${door.port}`,
    ...(dice.chance(0.9) ? [door.credentials(path)] : []),
    ...(body.length > 0 ? [`content-type: ${dice.chance(0.7) ? 'application/json' : dice.pick(TYPES)}`] : []),
    ...Array.from({ length: dice.below(3) }, () => dice.pick(ODD_HEADERS)),
    ...(isBroken ? [dice.pick(BROKEN)()] : []),
    isChunked ? 'transfer-encoding: chunked' : `content-length: ${body.length}`,
    'connection: close',
  ]
  const bytes = Buffer.concat([
    Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'),
    isChunked ? chunked(body, dice) : body,
  ])
  const { delivery, isWhole } = anyDelivery(bytes, dice)
  const isHttp = !isBroken && isWhole && method !== 'HEAD'
  const text = bytes.subarray(0, 1_500).toString('latin1')
  return { method, path, isHttp, isLost: !isWhole || delivery.hangUp || isBroken, delivery, text }
}

/** In one piece, in a few, slowly, with another request behind it, or only half of it. */
function anyDelivery(bytes: Buffer, dice: Dice): { delivery: Delivery; isWhole: boolean } {
  const plain = { pieces: [bytes], pauseMs: 0, hangUp: false, withinMs: WITHIN_MS }
  switch (dice.below(12)) {
    case 0:
      return { delivery: { ...plain, pieces: cut(bytes, dice, 6), pauseMs: 5 }, isWhole: true }
    case 1:
      return { delivery: { ...plain, pieces: cut(bytes, dice, 40) }, isWhole: true }
    case 2: {
      const half = bytes.subarray(0, dice.below(bytes.length))
      return { delivery: { ...plain, pieces: [half], hangUp: true, withinMs: 2_000 }, isWhole: false }
    }
    case 3:
      return { delivery: { ...plain, hangUp: true }, isWhole: true }
    case 4: {
      const pipelined = Buffer.concat([Buffer.from('GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'), bytes])
      return { delivery: { ...plain, pieces: [pipelined] }, isWhole: false }
    }
    default:
      return { delivery: plain, isWhole: true }
  }
}

function cut(bytes: Buffer, dice: Dice, most: number): Buffer[] {
  const places = Array.from({ length: dice.below(most) }, () => dice.below(bytes.length)).sort((a, b) => a - b)
  return [0, ...places].map((from, index) => bytes.subarray(from, places[index] ?? bytes.length))
}

function chunked(body: Buffer, dice: Dice): Buffer {
  const parts = cut(body, dice, 8).filter((part) => part.length > 0)
  const extension = dice.chance(0.2) ? ';a=b' : ''
  const chunks = parts.map((part) =>
    Buffer.concat([Buffer.from(`${part.length.toString(16)}${extension}\r\n`), part, Buffer.from('\r\n')]),
  )
  return Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')])
}

function anyPath({ path, query }: Operation, { known }: Door, dice: Dice): string {
  const filled = path.replace(/\{\w+\}/g, () => anyPart(known(), dice))
  const odd = dice.below(30)
  const changed = odd === 0 ? `${filled}/` : odd === 1 ? `//${filled}` : odd === 2 ? `${filled}/%2e%2e/x` : filled
  if (!dice.chance(0.4)) return changed
  const names = query.length > 0 && dice.chance(0.8) ? query : ['fuzz', '__proto__', 'limit', 'after']
  const pairs = Array.from({ length: 1 + dice.below(3) }, () => {
    const value = dice.chance(0.3) ? String(dice.below(100)) : dice.pick(NASTY_TEXTS).slice(0, 3_000)
    return `${names[dice.below(names.length)]}=${encoded(value)}`
  })
  return `${changed}?${pairs.join('&')}`
}

function anyPart(known: readonly string[], dice: Dice): string {
  const existing = known[dice.below(known.length)]
  if (existing !== undefined && dice.chance(0.7)) return encoded(existing)
  return dice.pick([
    encoded(dice.pick(NASTY_TEXTS).slice(0, 2_000)),
    '%',
    '%zz',
    '%ff%fe',
    '%00',
    '..',
    '.',
    String(dice.below(1_000)),
    crypto.randomUUID(),
  ])
}

/** As a URL has it; lone surrogates cannot be said there. */
function encoded(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'))
}
