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
  return new ClientQueue(start, store, now)
}

/** A class, since there is one for every client: closures would be made for each. */
class ClientQueue implements Queue {
  readonly position: QueuePosition
  readonly bell: string
  readonly #store: Pick<DeliveryStore, 'settle' | 'flush'>
  readonly #now: () => number
  #outstanding: Outstanding | null = null
  #lastFromSeq = -1
  #lastAnswerAt = Number.NEGATIVE_INFINITY
  #echoesCursor = false

  constructor(start: QueuePosition, store: Pick<DeliveryStore, 'settle' | 'flush'>, now: () => number) {
    this.position = { ...start }
    this.bell = `client:${start.clientId}`
    this.#store = store
    this.#now = now
  }

  advance({ lastSeq, settledSeq, pendingBytes }: QueuePosition): void {
    const { position } = this
    position.lastSeq = Math.max(position.lastSeq, lastSeq)
    position.settledSeq = Math.max(position.settledSeq, settledSeq)
    position.sentSeq = Math.max(position.sentSeq, position.settledSeq)
    position.pendingBytes = pendingBytes
  }

  handOut(messages: Delivery[], connection: { abort(): void }): Batch {
    const { position } = this
    const fromSeq = (messages[0]?.seq ?? 1) - 1
    const toSeq = messages.at(-1)?.seq ?? fromSeq
    const mine: Outstanding = { fromSeq, toSeq, state: 'writing', connection, decided: null }
    this.#outstanding = mine
    this.#lastFromSeq = fromSeq
    this.#lastAnswerAt = this.#now()
    position.sentSeq = Math.max(position.sentSeq, toSeq)
    // A read can see a commit before the writer has told of it; the cursor of this answer is ours all the same.
    position.lastSeq = Math.max(position.lastSeq, toSeq)
    return {
      messages,
      toSeq,
      written: () => {
        if (mine.state === 'written') return
        mine.state = 'written'
        mine.decided?.()
        if (this.#outstanding === mine) this.#note({})
      },
      lost: () => {
        mine.decided?.()
        if (this.#outstanding === mine) this.#giveBack(mine)
      },
    }
  }

  settleImplicitly(): boolean | Promise<boolean> {
    const { sentSeq } = this.position
    if (this.#outstanding?.state === 'writing') return this.#settleWritten(this.#outstanding, sentSeq)
    this.#outstanding = null
    return this.#receive(sentSeq, 'assumed')
  }

  acknowledge(seq: number): boolean {
    const first = !this.#echoesCursor
    this.#echoesCursor = true
    if (this.#outstanding && this.#outstanding.toSeq <= seq) this.#outstanding = null
    const news = this.#receive(seq, 'cursor')
    if (first && !news) this.#note({})
    return news
  }

  takeBack(seq: number): boolean {
    const { position } = this
    const from = Math.max(seq, position.settledSeq)
    if (position.sentSeq <= from) return false
    const failed = { fromSeq: from + 1, toSeq: position.sentSeq }
    position.sentSeq = from
    this.#outstanding = null
    this.#note({ failed: [failed] })
    return true
  }

  used(seq: number): void {
    const batch = this.#outstanding
    const inBatch = batch !== null && seq > batch.fromSeq && seq <= batch.toSeq
    this.#receive(inBatch ? batch.toSeq : seq, 'used')
    if (inBatch) this.#outstanding = null
  }

  repeatedWithin(fromSeq: number, ms: number): boolean {
    return this.#lastFromSeq === fromSeq && this.#now() - this.#lastAnswerAt < ms
  }

  async #settleWritten(pending: Outstanding, upTo: number): Promise<boolean> {
    // The older answer is on its way. Wait for its end rather than send everything twice; a frozen reader is cut off.
    await patiently(pending)
    if (this.#outstanding === pending && pending.state === 'writing') {
      pending.connection.abort()
      this.#giveBack(pending)
    }
    if (this.#outstanding === pending) this.#outstanding = null
    // What went out while we waited is not this poll's to judge; what was lost has been taken back.
    return this.#receive(Math.min(upTo, this.position.sentSeq), 'assumed')
  }

  /** Back into the queue, in front. */
  #giveBack(batch: Outstanding): void {
    this.#outstanding = null
    const from = Math.max(batch.fromSeq, this.position.settledSeq)
    if (batch.toSeq <= from) return
    this.position.sentSeq = from
    this.#note({ failed: [{ fromSeq: from + 1, toSeq: batch.toSeq }] })
    // The loss must not be forgotten in a crash: the store may already know the batch as sent.
    void this.#store.flush().catch(() => undefined)
  }

  #receive(seq: number, kind: AckKind): boolean {
    const { position } = this
    if (seq <= position.settledSeq) return false
    const ack = { fromSeq: position.settledSeq + 1, toSeq: seq, kind, at: this.#now() }
    position.settledSeq = seq
    position.sentSeq = Math.max(position.sentSeq, seq)
    this.#note({ acks: [ack] })
    return true
  }

  /** What is being written is not yet known as sent. */
  #note({ acks = [], failed = [] }: Partial<Pick<Settlement, 'acks' | 'failed'>>): void {
    const { clientId, sentSeq, settledSeq } = this.position
    const outstanding = this.#outstanding
    const known = outstanding?.state === 'writing' ? Math.min(outstanding.fromSeq, sentSeq) : sentSeq
    this.#store.settle({
      clientId,
      sentSeq: Math.max(known, settledSeq),
      settledSeq,
      acks,
      failed,
      echoesCursor: this.#echoesCursor,
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
