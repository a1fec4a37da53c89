import { randomUUID, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { sleep } from '../../kit/retry.ts'
import type { HandOver } from '../http/receipts.ts'
import type { Batch } from '../queue.ts'

/** Shows that a call comes from another node of ours. */
export const HOP_HEADER = 'x-switchboard-hop'
/** On an answer to another node: what became of these messages is to be told under this id. */
export const BATCH_HEADER = 'x-switchboard-batch'
/** On an answer to another node: somebody else leads. */
export const NOT_LEADING_HEADER = 'x-switchboard-not-leading'
/** Where the fate of a batch is told, followed by its id. */
export const BATCHES_PATH = '/switchboard/hop/batches/'

export type Fate = 'written' | 'lost'

/** Messages that were handed to another node, which knows better than we do whether its client got them. */
export interface Hops extends HandOver {
  /** Tells whether the other side knows the nodes' secret, and takes the header away. */
  recognise(request: IncomingMessage): boolean
  tell(id: string, fate: Fate): void
  /** Resolves when it is known what became of everything that was handed over, or after a while. */
  settled(withinMs: number): Promise<void>
}

/** As long as nobody says otherwise, messages in other hands have not arrived. */
const SILENT_MEANS_LOST_MS = 30_000
/** A reset that comes after an answer was written is told as well. */
const REMEMBER_MS = 5 * 60_000

export function openHops(secret: string): Hops {
  const known = new WeakSet<IncomingMessage>()
  const handed = new Map<string, Pick<Batch, Fate> & { timer: NodeJS.Timeout }>()
  const untold = new Set<string>()
  let allTold = () => {}

  return {
    recognise(request) {
      const given = request.headers[HOP_HEADER]
      if (given === undefined) return false
      delete request.headers[HOP_HEADER]
      const good = typeof given === 'string' && isSame(given, secret)
      if (good) known.add(request)
      return good
    },
    handOver(request, { written, lost }) {
      if (!known.has(request)) return null
      const id = randomUUID()
      const timer = setTimeout(() => tell(id, 'lost'), SILENT_MEANS_LOST_MS).unref()
      // Without the messages: it is remembered for minutes.
      handed.set(id, { written, lost, timer })
      untold.add(id)
      return { [BATCH_HEADER]: id }
    },
    tell,
    async settled(withinMs) {
      if (untold.size === 0) return
      const enough = new AbortController()
      allTold = () => enough.abort()
      await sleep(withinMs, enough.signal)
    },
  }

  function tell(id: string, fate: Fate): void {
    const one = handed.get(id)
    if (one === undefined) return
    clearTimeout(one.timer)
    one[fate]()
    untold.delete(id)
    if (untold.size === 0) allTold()
    if (fate === 'lost') handed.delete(id)
    else one.timer = setTimeout(() => handed.delete(id), REMEMBER_MS).unref()
  }
}

function isSame(given: string, secret: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(secret)]
  return one.length === other.length && timingSafeEqual(one, other)
}
