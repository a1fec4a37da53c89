/** The plain data of the hub. Times are Unix milliseconds, ids of the hub's own are integers that are never used twice. */

/** An AI client that registered. */
export interface Client {
  id: number
  name: string
  label: string
  createdAt: number
  /** `createdAt` until its first call. */
  lastSeen: number
  /** It said goodbye (`notifystop`), or its token was revoked, and it has not called since. */
  stopped: boolean
  /** An admin made it the one for users who chose nobody. At most one client is. */
  isDefault: boolean
  /** Taken only when no other client is there. */
  fallback: boolean
  /** Hub commands that this client wants to see itself, without prefix, lower case. */
  passthrough: string[]
  /** It has echoed a cursor of ours before, so an empty cursor means that it lost its state. */
  echoesCursor: boolean
  /** The bot account whose messages it gets; null: those of all. */
  account: string | null
}

/** A virtual token, known only by its SHA-256 (hex). */
export interface ClientToken {
  hash: string
  clientId: number
  /** Set while a rotated token overlaps with its successor. */
  expiresAt: number | null
}

/**
 * Where a client's queue stands. `seq` counts a client's deliveries without gaps, so all sizes are differences:
 * (settled, sent] was answered but is not known as received, (sent, last] waits.
 */
export interface QueuePosition {
  clientId: number
  lastSeq: number
  sentSeq: number
  settledSeq: number
  /** Bytes of what is not settled. */
  pendingBytes: number
}

/** One message in one client's queue, ready to be put into an answer. */
export interface Delivery {
  seq: number
  messageId: number
  /** The hub's own context token for this client and message. */
  contextToken: string
  /** How often it was handed out without being received. */
  failures: number
  queuedAt: number
  bytes: number
  /** Digits of the `message_id` on the wire. */
  wireId: string
  /** The five fields of the spec but `context_token`, as JSON text. */
  spec: string
  /** The upstream's object without `context_token` and `message_id`, as JSON text, to the digit as it came. */
  raw: string
}

/** Why a stretch of a queue counts as received. */
export type AckKind = 'cursor' | 'used' | 'assumed'

/** Why a message left a queue without being received. */
export type DeathReason = 'overflow' | 'expired' | 'undeliverable' | 'client_removed' | 'no_client'

/** What became of an upstream message. */
export type MessageState = 'routed' | 'command' | 'unrouted' | 'suppressed' | 'quarantined'

/** A text of the hub's own for a user. */
export interface Notice {
  /** Told at most once in `onceMs` per conversation and kind; always when 0. */
  kind: string
  onceMs: number
  text: string
}

/** One upstream message with everything that was decided about it. */
export interface IngestEntry {
  /** Digits (or text) of the upstream id; null when it had none. */
  upstreamId: string | null
  /** Same user, content, creation time and sequence give the same fingerprint; null when it cannot be told. */
  fingerprint: string | null
  userId: string
  /** The upstream's context token; null leaves the conversation's as it was. */
  upstreamToken: string | null
  spec: string
  raw: string
  state: MessageState
  /** Why it went where it went: `mention`, `quote`, `chosen`, `default`, `first_online`, … */
  reason: string
  /** The clients that get it, each with a context token made for it. */
  deliveries: { clientId: number; contextToken: string }[]
  /** The user's new chosen client (null: none); absent leaves it. */
  choose?: number | null
  notices: Notice[]
}

/** An upstream answer, to be kept in one commit. */
export interface IngestBatch {
  account: string
  /** Where the next upstream poll goes on; null leaves it. */
  cursor: { source: string; value: string } | null
  now: number
  entries: IngestEntry[]
  bounds: QueueBounds
}

/** A queue holds this many messages; what passes it pushes out the oldest. */
export const MAX_QUEUE_MESSAGES = 10_000

export interface QueueBounds {
  maxMessages: number
  maxBytes: number
  /** Told to the user whose message was pushed out, `{client}` standing for the client's name. */
  overflowNotice: Notice
}

/** What a commit of {@link IngestBatch} did. */
export interface IngestResult {
  /** In the order of the entries; a duplicate of something stored before is `suppressed`. */
  entries: { messageId: number; state: MessageState; duplicateOf: number | null }[]
  /** The queues that changed. */
  positions: QueuePosition[]
  /** What now stands at their tails, in the order of `seq`; `entry` counts the batch's entries. */
  queued: (Pick<Delivery, 'seq' | 'messageId' | 'contextToken' | 'bytes' | 'wireId'> & {
    entry: number
    clientId: number
  })[]
  died: { clientId: number; reason: DeathReason; count: number }[]
  /** Notices that are to be sent now. */
  sends: PendingSend[]
}

/** Changes of queue positions, gathered and written lazily. */
export interface Settlement {
  clientId: number
  sentSeq: number
  settledSeq: number
  /** What counts as received since the last settlement, and why. */
  acks: { fromSeq: number; toSeq: number; kind: AckKind; at: number }[]
  /** Handed out but not received: each of these failed once more. */
  failed: { fromSeq: number; toSeq: number }[]
  echoesCursor: boolean
}

/** Whom a context token speaks of. */
export interface ContextOwner {
  clientId: number
  seq: number
  messageId: number
  account: string
  userId: string
  createdAt: number
}

/** What the hub knows of a user of an account. */
export interface Conversation {
  account: string
  userId: string
  /** The newest context token of the upstream. */
  upstreamToken: string | null
  upstreamTokenAt: number | null
  lastInboundAt: number | null
  /** Sends that used the newest token. */
  sendsUsed: number
  chosenClientId: number | null
}

/** `unconfirmed`: accepted without an id, which may mean that nobody sees it. `throttled`: the service holds sends back. */
export type SendState = 'queued' | 'sending' | 'accepted' | 'unconfirmed' | 'failed' | 'throttled' | 'unknown'

/** One upstream call of a send. `body` is the upstream's `msg` object as JSON text, without recipient and context token. */
export interface SendPart {
  part: number
  body: string
  state: SendState
  /** Digits, once the upstream gave one. */
  upstreamId: string | null
}

/** A message on its way to a user. */
export interface PendingSend {
  id: number
  /** null: the hub itself speaks. */
  clientId: number | null
  account: string
  userId: string
  createdAt: number
  parts: SendPart[]
}

/** A send as the admin sees it. */
export interface SendRecord extends Omit<PendingSend, 'parts'> {
  state: SendState
  parts: Pick<SendPart, 'state' | 'upstreamId'>[]
}

/** A send as it is admitted. */
export interface NewSend {
  clientId: number | null
  account: string
  userId: string
  /** The caller's own id for it, for finding a repetition. */
  key: string | null
  bodyHash: string
  /** The plain text, for finding the author of a quote; never logged. */
  text: string
  /** Bodies of the upstream calls, in order. The first one counts as `sending` from the start, so a crash leaves it `unknown`. */
  parts: string[]
  now: number
}

/** What is known of an earlier send under the same key. */
export interface KnownSend {
  id: number
  state: SendState
  /** The answer that was given, as JSON text; null when none was. */
  answer: string | null
  createdAt: number
}

/** A message that could not be delivered, kept until somebody replays or discards it. */
export interface DeadLetter {
  id: number
  clientId: number | null
  clientName: string | null
  messageId: number
  reason: DeathReason
  userId: string
  spec: string
  createdAt: number
}

/** A stored message with its deliveries, for the admin. */
export interface MessageRecord {
  id: number
  account: string
  upstreamId: string | null
  userId: string
  receivedAt: number
  state: MessageState
  reason: string
  duplicateOf: number | null
  spec: string
  deliveries: {
    clientId: number
    clientName: string
    seq: number
    state: 'queued' | 'sent' | 'acked' | 'acked_assumed' | 'dead' | 'expired'
    failures: number
  }[]
}
