import type { Log } from '../kit/log.ts'
import { backoff, sleep } from '../kit/retry.ts'
import type { Intake, ReadBatch } from './intake.ts'
import type { Link } from './link.ts'
import { INBOX_PLACES, type InboxEntry } from './store/port.ts'
import type { UpstreamBatch } from './upstream/port.ts'

/** Stores what the service answers, in its order, however long it takes. */
export interface Storing {
  /** Stores what an earlier run had kept and not stored; gives the cursor to go on with. */
  recover(cursor: string): Promise<string>
  /** Resolves when the service may be asked for more: the batch cannot be lost any more. */
  take(batch: UpstreamBatch, after: string): Promise<void>
  /** Nothing came: what was kept on the way is let go of when it is stored. */
  rest(): Promise<void>
  /** Resolves when nothing is under way any more. What could not be stored stays kept. */
  ended(): Promise<void>
}

export interface StoringOptions {
  intake: Pick<Intake, 'read' | 'take'>
  /** Where answers may wait for that; null: nowhere. */
  inbox?: AccountInbox | null | undefined
  link: Pick<Link, 'pollCompleted' | 'failed'>
  now: () => number
  log: Log
  /** Told when batches cannot be stored, and when they can again. */
  onStoring?: ((works: boolean) => void) | undefined
}

/** The inbox of one account and service. */
export interface AccountInbox {
  keep(entry: Omit<InboxEntry, 'source'>): Promise<void>
  due(cursor: string): Promise<InboxEntry[]>
  clear(): Promise<void>
}

/** An answer with this many messages has more behind it. */
export const BACKLOG_BATCH = 50
/** As many may wait as are being stored: together they have a place each. */
const MOST_WAITING = INBOX_PLACES / 2
/** Nor more than this: it is all in memory. */
const MOST_WAITING_CHARS = 16 * 1024 * 1024
/** So long after one the next is waited for, to go into the same commit. */
const NEXT_WITHIN_MS = 15
const MOST_COMMIT_RETRY_MS = 5_000
const NOT_STORED = 'messages cannot be stored; check the disk of the data directory'
const KEPT_UNREAD =
  'messages that an earlier run kept cannot be read or stored; check the disk of the data directory, and inbox/ in it'

/**
 * While there is no backlog an answer is stored before the next is asked for. With one behind it, it is kept as it came,
 * which takes a single short write, and stored while others are on their way, with some of them: what a commit does for
 * every user and every queue it then does once for all their messages.
 */
export function openStoring(options: StoringOptions, signal: AbortSignal): Storing {
  const { intake, inbox = null, link, now, log, onStoring } = options
  let waiting: ReadBatch[] = []
  let waitingChars = 0
  let working: Promise<void> | null = null
  /** Ends the wait for others to go into the same commit. */
  let goOn: (() => void) | null = null
  let waits: NodeJS.Timeout | undefined
  /** There are no others. */
  let isLast = false
  /** The commit that is under way, with all that had gathered before it. */
  let step = Promise.resolve()
  /** All is to end, and something could not be stored: it is in the inbox, and nothing may be stored before it. */
  let givenUp: Error | null = null
  let used = false
  let isTroubled = false

  return {
    async recover(cursor) {
      if (inbox === null) return cursor
      let at = cursor
      await forSure(async () => {
        const due = await inbox.due(at)
        await intake.take(due.map(intake.read))
        at = due.at(-1)?.cursor ?? at
        await inbox.clear()
      }, KEPT_UNREAD).catch(() => undefined)
      return at
    },
    async take(batch, after) {
      const kept = await isKept(batch, after)
      if (!kept) await rest()
      if (givenUp !== null) throw givenUp
      if (!kept) return store([intake.read(batch)])
      waiting.push(intake.read(batch))
      for (const { length } of batch.messages) waitingChars += length
      working ??= work()
      waits?.refresh()
      while (isFull()) {
        goOn?.()
        await step
      }
    },
    rest,
    ended: rest,
  }

  async function isKept({ messages, cursor }: UpstreamBatch, after: string): Promise<boolean> {
    // Without a cursor of its own it would not be found again.
    if (inbox === null || messages.length < BACKLOG_BATCH || cursor === null || cursor === after) return false
    try {
      used = true
      await inbox.keep({ after, cursor, messages })
      isTroubled = false
      return true
    } catch (error) {
      if (!isTroubled)
        log.error('answers cannot be kept on their way; each is stored before the next is asked for', { error })
      isTroubled = true
      return false
    }
  }

  async function work(): Promise<void> {
    try {
      while (waiting.length > 0) {
        await gathered()
        step = store(waiting)
        waiting = []
        waitingChars = 0
        await step
      }
    } catch (error) {
      givenUp = new Error('what came before could not be stored', { cause: error })
    } finally {
      working = null
    }
  }

  /** Others that follow at once may come along. */
  async function gathered(): Promise<void> {
    if (isLast || isFull()) return
    await new Promise<void>((resolve) => {
      waits = setTimeout(resolve, NEXT_WITHIN_MS)
      goOn = resolve
    })
    clearTimeout(waits)
    waits = undefined
    goOn = null
  }

  function isFull(): boolean {
    return waiting.length >= MOST_WAITING || waitingChars >= MOST_WAITING_CHARS
  }

  async function rest(): Promise<void> {
    isLast = true
    goOn?.()
    await working
    isLast = false
    await letGo()
  }

  /** All that was kept is stored. */
  async function letGo(): Promise<void> {
    if (!used || givenUp !== null) return
    used = false
    await inbox
      ?.clear()
      .catch((error: unknown) => log.error('what was kept on its way could not be let go of', { error }))
  }

  /** The service does not repeat what it has answered. */
  function store(batches: readonly ReadBatch[]): Promise<void> {
    return forSure(() => intake.take(batches), NOT_STORED)
  }

  /** Tries until it is done; fails only when all is to end. */
  async function forSure(work: () => Promise<void>, problem: string): Promise<void> {
    const pause = backoff({ firstMs: 50, mostMs: MOST_COMMIT_RETRY_MS })
    for (let tries = 0; ; tries += 1) {
      try {
        await work()
        if (tries > 0) {
          link.pollCompleted()
          onStoring?.(true)
        }
        return
      } catch (error) {
        const delayMs = pause.next()
        log.error(`${problem}; trying again`, { error })
        link.failed('reconnecting', problem, now() + delayMs)
        onStoring?.(false)
        await sleep(delayMs, signal)
        if (signal.aborted) throw error
      }
    }
  }
}
