import type { Readable } from 'node:stream'

/** The messaging service behind the hub: one bot account of it. */
export interface Upstream {
  /** One long poll after `cursor`; its messages as raw JSON texts. */
  poll(cursor: string, signal: AbortSignal): Promise<UpstreamBatch>
  /** Says that the bot comes or goes. */
  notify(what: 'start' | 'stop', signal: AbortSignal): Promise<void>
  send(message: OutgoingMessage, signal: AbortSignal): Promise<SendReceipt>
  typing(typing: { userId: string; ticket: string; on: boolean }, signal: AbortSignal): Promise<void>
  /** The ticket that typing needs. */
  typingTicket(user: { userId: string; contextToken: string | null }, signal: AbortSignal): Promise<string>
  /** Forwards the JSON text of a request for an upload address and returns the answer's JSON text. */
  uploadUrl(body: string, signal: AbortSignal): Promise<string>
}

/** The service's file store. Both ways the bytes pass through and are never gathered. */
export interface Cdn {
  /** Sends a file; resolves with the param under which it can be downloaded. `length` is null when it is not known. */
  upload(url: string, body: Readable, length: number | null, signal: AbortSignal): Promise<string>
  /** `length` is null when the store does not say. */
  download(url: string, signal: AbortSignal): Promise<{ body: Readable; length: number | null }>
}

export interface UpstreamBatch {
  /** Raw JSON texts. */
  messages: string[]
  /** What `JSON.parse` made of them, where that is known. */
  parsed?: readonly unknown[]
  /** null: stay where you are. */
  cursor: string | null
}

export interface OutgoingMessage {
  userId: string
  contextToken: string | null
  /** The `msg` object as JSON text, without recipient and context token. */
  body: string
}

export interface SendReceipt {
  /** Digits; null when the service accepted the message but gave no id, which may mean that it was dropped. */
  upstreamId: string | null
}

/** The service's login by QR code: the hub shows a code, a phone scans it. */
export interface QrService {
  begin(signal: AbortSignal): Promise<{ qrcode: string /** What the picture says: an address. */; content: string }>
  /** One long poll for what the phone did, at `baseUrl` when the service has moved the login there. */
  status(
    asked: { qrcode: string; verifyCode: string | null; baseUrl: string | null },
    signal: AbortSignal,
  ): Promise<QrProgress>
}

/** What became of a QR code. */
export type QrProgress =
  | { status: 'wait' | 'scanned' | 'need_verify_code' | 'verify_code_blocked' | 'already_bound' | 'expired' }
  | { status: 'redirect'; host: string }
  | { status: 'confirmed'; botToken: string; botId: string; userId: string | null; baseUrl: string | null }

/**
 * - `unreachable`: no connection, or it broke, or nothing came. `ambiguous` tells whether the request may have arrived.
 * - `expired`: the login is no longer good.
 * - `throttled`, `refused`: the service answered and said no.
 * - `bad_answer`: it answered something that is not the protocol.
 */
export type UpstreamFailure = 'unreachable' | 'expired' | 'throttled' | 'refused' | 'bad_answer'

/** What went wrong with a call to the service. Its text never holds a token or a user's words. */
export class UpstreamError extends Error {
  readonly kind: UpstreamFailure
  /** The service's own code, where it gave one. */
  readonly upstreamCode: number | null
  /** The request may have been carried out all the same. */
  readonly ambiguous: boolean
  /** Nothing came back at all. */
  readonly timedOut: boolean

  constructor(
    kind: UpstreamFailure,
    message: string,
    {
      upstreamCode = null,
      ambiguous = false,
      timedOut = false,
      cause,
    }: { upstreamCode?: number | null; ambiguous?: boolean; timedOut?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.name = 'UpstreamError'
    this.kind = kind
    this.upstreamCode = upstreamCode
    this.ambiguous = ambiguous
    this.timedOut = timedOut
  }
}
