import type { AckKind, Delivery, QueuePosition, Settlement } from './model.ts'
import type { DeliveryStore } from './store/port.ts'

/** Messages that were handed to one poll, until it is known what became of them. */
export interface Batch {
  readonly messages: Delivery[]
  readonly toSeq: number
  /** The bytes are with the kernel. That says nothing about receipt; only the socket's later fate does. */
  written(): void
  /** It cannot have arrived: the write did not finish, or the connection was reset. */
  lost(): void
}

/** One client's queue: where it stands, and what is on its way. All in memory; the store hears of changes lazily. */
export interface Queue {
  readonly position: QueuePosition
  /** The key of its doorbell. */
  readonly bell: string
  /** The store appended or removed: takes over what is newer there. */
  advance(position: QueuePosition): void
  /** Gives messages to a poll; `abort` ends its connection. */
  handOut(messages: Delivery[], connection: { abort(): void }): Batch
  /** A poll without a cursor: what was sent before counts as received, unless something speaks against it. True when something changed. */
  settleImplicitly(): boolean | Promise<boolean>
  /** A cursor came back: everything up to it was received. True when that is news. */
  acknowledge(seq: number): boolean
  /** Everything after `seq` goes out again; true when something of it had gone out before. */
  takeBack(seq: number): boolean
  /** A context token of message `seq` was used: the answer it came in did arrive. */
  used(seq: number): void
  /** Whether an answer with messages went out after the same point within the last `ms`. */
  repeatedWithin(fromSeq: number, ms: number): boolean
}

interface Outstanding {
  fromSeq: number
  toSeq: number
  state: 'writing' | 'written'
  connection: { abort(): void }
  /** Called when it is known what became of it; somebody waits for that. */
  decided: (() => void) | null
}

const WRITE_PATIENCE_MS = 1_000

/** A queue from where the store has it. What is not known as sent is still to be sent. */
export function openQueue(
  start: QueuePosition,
  store: Pick<DeliveryStore, 'settle' | 'flush'>,
  now: () => number,
): Queue {
  const position = { ...start }
  let outstanding: Outstanding | null = null
  let lastAnswer = { fromSeq: -1, at: Number.NEGATIVE_INFINITY }
  let echoesCursor = false

  return {
    position,
    bell: `client:${start.clientId}`,
    advance({ lastSeq, settledSeq, pendingBytes }) {
      position.lastSeq = Math.max(position.lastSeq, lastSeq)
      position.settledSeq = Math.max(position.settledSeq, settledSeq)
      position.sentSeq = Math.max(position.sentSeq, position.settledSeq)
      position.pendingBytes = pendingBytes
    },
    handOut,
    settleImplicitly() {
      if (outstanding?.state === 'writing') return settleWritten(outstanding, position.sentSeq)
      outstanding = null
      return receive(position.sentSeq, 'assumed')
    },
    acknowledge(seq) {
      const first = !echoesCursor
      echoesCursor = true
      if (outstanding && outstanding.toSeq <= seq) outstanding = null
      const news = receive(seq, 'cursor')
      if (first && !news) note({})
      return news
    },
    takeBack(seq) {
      const from = Math.max(seq, position.settledSeq)
      if (position.sentSeq <= from) return false
      const failed = { fromSeq: from + 1, toSeq: position.sentSeq }
      position.sentSeq = from
      outstanding = null
      note({ failed: [failed] })
      return true
    },
    used(seq) {
      const batch = outstanding
      const inBatch = batch !== null && seq > batch.fromSeq && seq <= batch.toSeq
      receive(inBatch ? batch.toSeq : seq, 'used')
      if (inBatch) outstanding = null
    },
    repeatedWithin: (fromSeq, ms) => lastAnswer.fromSeq === fromSeq && now() - lastAnswer.at < ms,
  }

  async function settleWritten(pending: Outstanding, upTo: number): Promise<boolean> {
    // The older answer is on its way. Wait for its end rather than send everything twice; a frozen reader is cut off.
    await patiently(pending)
    if (outstanding === pending && pending.state === 'writing') {
      pending.connection.abort()
      giveBack(pending)
    }
    if (outstanding === pending) outstanding = null
    // What went out while we waited is not this poll's to judge; what was lost has been taken back.
    return receive(Math.min(upTo, position.sentSeq), 'assumed')
  }

  function handOut(messages: Delivery[], connection: { abort(): void }): Batch {
    const fromSeq = (messages[0]?.seq ?? 1) - 1
    const toSeq = messages.at(-1)?.seq ?? fromSeq
    const mine: Outstanding = { fromSeq, toSeq, state: 'writing', connection, decided: null }
    outstanding = mine
    lastAnswer = { fromSeq, at: now() }
    position.sentSeq = Math.max(position.sentSeq, toSeq)
    // A read can see a commit before the writer has told of it; the cursor of this answer is ours all the same.
    position.lastSeq = Math.max(position.lastSeq, toSeq)
    return {
      messages,
      toSeq,
      written() {
        if (mine.state === 'written') return
        mine.state = 'written'
        mine.decided?.()
        if (outstanding === mine) note({})
      },
      lost() {
        mine.decided?.()
        if (outstanding === mine) giveBack(mine)
      },
    }
  }

  /** Back into the queue, in front. */
  function giveBack(batch: Outstanding): void {
    outstanding = null
    const from = Math.max(batch.fromSeq, position.settledSeq)
    if (batch.toSeq <= from) return
    position.sentSeq = from
    note({ failed: [{ fromSeq: from + 1, toSeq: batch.toSeq }] })
    // The loss must not be forgotten in a crash: the store may already know the batch as sent.
    void store.flush().catch(() => undefined)
  }

  function receive(seq: number, kind: AckKind): boolean {
    if (seq <= position.settledSeq) return false
    const ack = { fromSeq: position.settledSeq + 1, toSeq: seq, kind, at: now() }
    position.settledSeq = seq
    position.sentSeq = Math.max(position.sentSeq, seq)
    note({ acks: [ack] })
    return true
  }

  /** What is being written is not yet known as sent. */
  function note({ acks = [], failed = [] }: Partial<Pick<Settlement, 'acks' | 'failed'>>): void {
    const known = outstanding?.state === 'writing' ? Math.min(outstanding.fromSeq, position.sentSeq) : position.sentSeq
    store.settle({
      clientId: position.clientId,
      sentSeq: Math.max(known, position.settledSeq),
      settledSeq: position.settledSeq,
      acks,
      failed,
      echoesCursor,
    })
  }
}

/** Until it is known what became of a batch, or patience ends. */
function patiently(pending: Outstanding): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, WRITE_PATIENCE_MS)
    const others = pending.decided
    pending.decided = () => {
      clearTimeout(timer)
      others?.()
      resolve()
    }
  })
}
