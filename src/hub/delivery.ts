import { type Due, sharedDeadlines } from '../kit/deadlines.ts'
import type { Doorbell } from '../kit/doorbell.ts'
import { AppError } from '../kit/errors.ts'
import { BatchWaiter } from '../kit/tail.ts'
import { type Cursor, readCursor, writeCursor } from './cursor.ts'
import type { Client, ContextOwner, DeathReason, Delivery, QueuePosition } from './model.ts'
import { type Batch, openQueue, type Queue } from './queue.ts'
import type { DeliveryStore } from './store/port.ts'

/** The HTTP side of a poll, as delivery needs it. */
export interface PollConnection {
  /** The client has hung up. */
  isClosed(): boolean
  /** Stops the wait when it does. */
  onClose(wait: { stop(): void }): void
  /** Ends a connection whose answer hangs, so that it cannot arrive after all. */
  abort(): void
  /** The token is still good; a message must not go out under one that is not. */
  isGood?(): boolean
}

export interface Poll {
  client: Client
  tokenHash: string
  /** `get_updates_buf` as it came; undefined when the body had none. */
  cursor: string | undefined
  connection: PollConnection
  /** Gets the answer, once. What it does with it happens before anything else can. */
  onAnswer(answer: PollAnswer): void
  /** Gets the reason why there is none. */
  onFailure(error: unknown): void
}

export type PollAnswer =
  | { type: 'messages'; batch: Batch; cursor: string }
  | { type: 'empty'; cursor: string; closing: boolean }
  | { type: 'displaced'; delayMs: number }
  | { type: 'revoked' }
  | { type: 'gone' }

/** Hands each client its messages: none lost, and twice only where nothing else is possible. */
export interface DeliveryDesk {
  /** Serves a poll: now, or when there is something, or when its time is up. */
  poll(poll: Poll): void
  /** Queues changed in the store: wakes who waits. `fresh` is what was appended, so that they need not read it again. */
  advance(positions: QueuePosition[], fresh?: ReadonlyMap<number, Delivery[]>): void
  /** A context token was used, so the answer it came in did arrive. */
  used(owner: ContextOwner): void
  /** Takes messages that waited for longer than a day to the dead letters. */
  expire(): Promise<void>
  position(clientId: number): QueuePosition
  /** Ends the polls of a token that is no longer good. */
  revoke(clientId: number, tokenHash: string): void
  forget(clientId: number): void
  /** Answers every parked poll, empty, and every later one too. */
  drain(): void
  readonly parked: number
}

export interface DeliveryOptions {
  store: DeliveryStore
  doorbell: Doorbell
  hubId: string
  holdMs: number
  maxParked: number
  now: () => number
  onBuried: (clientId: number, count: number, reason: DeathReason, sends: BuriedSends) => void
}

type BuriedSends = Awaited<ReturnType<DeliveryStore['bury']>>['sends']

const MAX_BATCH = 100
const MAX_BATCH_BYTES = 1024 * 1024
/** The tokens and ids around a message in an answer. */
const ENVELOPE_BYTES = 150
const KEEP_MS = 24 * 60 * 60_000
const ALONE_AFTER_FAILURES = 4
const DEAD_AFTER_FAILURES = 7
const REPEAT_WITHIN_MS = 500
const CONFLICT_REPEATS_WITHIN_MS = 10_000
const CONFLICT_DELAY_MS = 3_000
const TELL_AGAIN_MS = 10 * 60_000

/** Of polls without a cursor, which are most: made once and not for each. */
const NOTHING_NEW = { from: null, limit: MAX_BATCH, isUnsaved: false }
const SOMETHING_NEW = { ...NOTHING_NEW, isUnsaved: true }

/** What a poll that waits asks of the desk. */
interface Waiters {
  read(poll: LivePoll): Delivery[] | Promise<Delivery[]>
  came(poll: LivePoll, batch: Delivery[] | undefined): void
  fail(poll: LivePoll, error: unknown): void
}

/** One poll that is being served. A class, since thousands of them wait: closures would be made for each. */
class LivePoll extends BatchWaiter<Delivery> implements Due {
  readonly poll: Poll
  readonly queue: Queue
  readonly #desk: Waiters
  /** How it ended, when something other than messages or time ended it. */
  ending: PollAnswer | null = null
  settled: Settled = NOTHING_NEW
  dueAt = 0

  constructor(poll: Poll, queue: Queue, desk: Waiters) {
    super()
    this.poll = poll
    this.queue = queue
    this.#desk = desk
  }

  onDue(): void {
    this.stop()
  }

  read(): Delivery[] | Promise<Delivery[]> {
    return this.#desk.read(this)
  }

  onBatch(batch: Delivery[] | undefined): void {
    this.#desk.came(this, batch)
  }

  onFailure(error: unknown): void {
    this.#desk.fail(this, error)
  }
}

/** Opens the desk with the queues as the store has them. */
export async function openDelivery(options: DeliveryOptions): Promise<DeliveryDesk> {
  const { store, doorbell, hubId, holdMs, now } = options
  const queues = new Map<number, Queue>()
  const live = new Map<number, LivePoll>()
  const conflictAt = new Map<number, number>()
  /** Clients who acknowledged something that the store does not know yet. */
  const unsaved = new Set<number>()
  const deadlines = sharedDeadlines(holdMs)
  let draining = false
  let fresh: Delivery[] = []
  const waiters: Waiters = { read: readBatch, came, fail }
  for (const position of await store.positions()) queues.set(position.clientId, openQueue(position, store, now))

  return {
    poll,
    advance(positions, appended) {
      for (const position of positions) {
        const queue = queueOf(position.clientId)
        queue.advance(position)
        // There for those who hear the ring at once; who comes later reads the store.
        fresh = appended?.get(position.clientId) ?? []
        doorbell.ring(queue.bell)
      }
      fresh = []
    },
    used: (owner) => queues.get(owner.clientId)?.used(owner.seq),
    expire,
    position: (clientId) => queueOf(clientId).position,
    revoke(clientId, tokenHash) {
      const poll = live.get(clientId)
      if (poll?.poll.tokenHash === tokenHash) end(clientId, poll, { type: 'revoked' })
    },
    forget(clientId) {
      const poll = live.get(clientId)
      if (poll) end(clientId, poll, { type: 'revoked' })
      queues.delete(clientId)
      conflictAt.delete(clientId)
      unsaved.delete(clientId)
    },
    drain() {
      draining = true
      for (const poll of live.values()) poll.stop()
    },
    get parked() {
      return deadlines.size
    },
  }

  function poll(poll: Poll): void {
    const { client, cursor: sent } = poll
    if (!live.has(client.id) && live.size >= options.maxParked) {
      const text = 'Too many polls are waiting at this hub; try again shortly.'
      poll.onFailure(new AppError('too_many_polls', text, { retryAfterMs: 5_000 }))
      return
    }
    displace(client.id)
    const queue = queueOf(client.id)
    const me = new LivePoll(poll, queue, waiters)
    live.set(client.id, me)
    const cursor = readCursor(sent, hubId, client.id, queue.position.lastSeq)
    const settling = settle(queue, client, cursor)
    if (settling instanceof Promise) {
      settling.then(
        (settled) => park(me, settled),
        (error: unknown) => fail(me, error),
      )
    } else park(me, settling)
  }

  /** Has it wait for messages, until the hold ends or the client hangs up. */
  function park(me: LivePoll, settled: Settled): void {
    me.settled = settled
    if (me.ending || draining || me.poll.connection.isClosed()) handOut(me, undefined)
    else {
      me.poll.connection.onClose(me)
      deadlines.add(me)
      me.wait(doorbell, me.queue.bell)
    }
  }

  /**
   * What was acknowledged is durable before the next batch goes out: a crash repeats what was in flight, nothing else. Not
   * before the poll is parked: the commit of that batch mostly brings it along, and then this waits for nothing.
   */
  function came(me: LivePoll, batch: Delivery[] | undefined): void {
    const { id } = me.poll.client
    if (batch === undefined || !(me.settled.isUnsaved || unsaved.has(id))) return void handOut(me, batch)
    // Whoever asks next has to wait for it too, should it fail.
    unsaved.add(id)
    store.flush(id).then(
      () => {
        unsaved.delete(id)
        handOut(me, batch)
      },
      (error: unknown) => fail(me, error),
    )
  }

  function handOut(me: LivePoll, batch: Delivery[] | undefined): void {
    leave(me)
    // From here to the caller's write nothing is awaited: no other poll can come in between.
    const answer = answerFor(me, batch)
    me.poll.onAnswer(answer)
  }

  function answerFor({ poll, queue, ending, settled }: LivePoll, batch: Delivery[] | undefined): PollAnswer {
    const { client, connection } = poll
    if (ending) return ending
    if (batch !== undefined && connection.isGood?.() === false) return { type: 'revoked' }
    if (connection.isClosed()) return { type: 'gone' }
    if (batch === undefined)
      return { type: 'empty', cursor: writeCursor(hubId, client.id, startOf(queue, settled.from)), closing: draining }
    const handed = queue.handOut(batch, connection)
    return { type: 'messages', batch: handed, cursor: writeCursor(hubId, client.id, handed.toSeq) }
  }

  function fail(me: LivePoll, error: unknown): void {
    leave(me)
    me.poll.onFailure(error)
  }

  function leave(me: LivePoll): void {
    deadlines.remove(me)
    if (live.get(me.poll.client.id) === me) live.delete(me.poll.client.id)
  }

  /** What this poll says about earlier answers, where it reads on, and whether the store must know that first. */
  function settle(queue: Queue, client: Client, cursor: Cursor): Settled | Promise<Settled> {
    if (isImplicit(cursor, client)) {
      const settling = queue.settleImplicitly()
      return settling instanceof Promise ? settling.then(settledImplicitly) : settledImplicitly(settling)
    }
    const from = cursor.kind === 'ours' ? cursor.seq : queue.position.settledSeq
    if (cursor.kind === 'ours') {
      client.echoesCursor = true
      // After a crash the client brings the same cursor again, so the store may learn of this with its next write.
      queue.acknowledge(cursor.seq)
    }
    const limit = queue.repeatedWithin(from, REPEAT_WITHIN_MS) ? 1 : MAX_BATCH
    const settled = { from, limit, isUnsaved: false }
    // The read that follows goes by the failures that this counts.
    return queue.takeBack(from) ? store.flush(client.id).then(() => settled) : settled
  }

  function readBatch(me: LivePoll): Delivery[] | Promise<Delivery[]> {
    const { queue, settled } = me
    const { lastSeq, settledSeq } = queue.position
    const after = startOf(queue, settled.from)
    if (lastSeq <= after) return []
    const isNext = fresh[0]?.seq === after + 1 && after >= settledSeq
    return isNext ? fitAnswer(fresh.slice(0, settled.limit), settledSeq) : readStored(me)
  }

  async function readStored(me: LivePoll): Promise<Delivery[]> {
    const { queue, settled } = me
    const { from, limit } = settled
    const { clientId, settledSeq } = queue.position
    const rows = await store.read(clientId, startOf(queue, from), limit, now() - KEEP_MS)
    const first = rows[0]
    if (first && first.seq > settledSeq && first.failures >= DEAD_AFTER_FAILURES) {
      await bury(queue, first.seq, 'undeliverable')
      return readBatch(me)
    }
    return fitAnswer(rows, settledSeq)
  }

  async function bury(queue: Queue, throughSeq: number, reason: DeathReason): Promise<void> {
    const { clientId } = queue.position
    const text = 'A message of yours could not be delivered to {client}. It is kept for the operator.'
    const notice = { kind: `dead:${clientId}`, onceMs: TELL_AGAIN_MS, text }
    const burial = await store.bury(clientId, throughSeq, reason, now(), notice)
    queue.advance(burial.position)
    options.onBuried(clientId, burial.count, reason, burial.sends)
  }

  async function expire(): Promise<void> {
    const before = now() - KEEP_MS
    for (const queue of queues.values()) {
      let throughSeq = queue.position.settledSeq
      for (;;) {
        const rows =
          throughSeq < queue.position.lastSeq ? await store.read(queue.position.clientId, throughSeq, MAX_BATCH, 0) : []
        const old = rows.filter(({ queuedAt }) => queuedAt < before)
        throughSeq = old.at(-1)?.seq ?? throughSeq
        if (old.length < MAX_BATCH) break
      }
      if (throughSeq > queue.position.settledSeq) await bury(queue, throughSeq, 'expired')
    }
  }

  /** The newest poll wins; only the older one's refusal is slowed down when this goes on. */
  function displace(clientId: number): void {
    const older = live.get(clientId)
    if (older === undefined) return
    const repeats = now() - (conflictAt.get(clientId) ?? Number.NEGATIVE_INFINITY) < CONFLICT_REPEATS_WITHIN_MS
    // One that has hung up already is no conflict.
    const closed = older.poll.connection.isClosed()
    if (!closed) conflictAt.set(clientId, now())
    end(clientId, older, closed ? { type: 'gone' } : { type: 'displaced', delayMs: repeats ? CONFLICT_DELAY_MS : 0 })
  }

  function end(clientId: number, poll: LivePoll, ending: PollAnswer): void {
    poll.ending = ending
    live.delete(clientId)
    poll.stop()
  }

  function queueOf(clientId: number): Queue {
    const known = queues.get(clientId)
    if (known) return known
    const fresh = openQueue({ clientId, lastSeq: 0, sentSeq: 0, settledSeq: 0, pendingBytes: 0 }, store, now)
    queues.set(clientId, fresh)
    return fresh
  }
}

/** What a poll's word on earlier answers came to. */
interface Settled {
  /** Where the poll reads on; null: after what was sent last, which may move while it waits. */
  readonly from: number | null
  readonly limit: number
  /** It acknowledged something that the store must know before more goes out. */
  readonly isUnsaved: boolean
}

function settledImplicitly(isUnsaved: boolean): Settled {
  return isUnsaved ? SOMETHING_NEW : NOTHING_NEW
}

function startOf({ position }: Queue, from: number | null): number {
  return from ?? position.sentSeq
}

/** A client that never echoed a cursor sends the same empty one for ever: it counts as none. */
function isImplicit(cursor: Cursor, client: Client): boolean {
  return cursor.kind === 'none' || (cursor.kind === 'empty' && !client.echoesCursor)
}

/** As much as one answer takes. What failed often before comes alone, so that it cannot hold up the rest. */
function fitAnswer(rows: Delivery[], settledSeq: number): Delivery[] {
  const suspect = ({ seq, failures }: Delivery) => seq > settledSeq && failures >= ALONE_AFTER_FAILURES
  let bytes = 0
  for (const [index, row] of rows.entries()) {
    bytes += Buffer.byteLength(row.spec) + row.bytes + ENVELOPE_BYTES
    if (index > 0 && (bytes > MAX_BATCH_BYTES || suspect(row))) return rows.slice(0, index)
    if (suspect(row)) return rows.slice(0, 1)
  }
  return rows
}
