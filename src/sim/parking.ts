import type { ServerResponse } from 'node:http'
import type { Doorbell } from '../kit/doorbell.ts'
import { nextBatch } from '../kit/tail.ts'
import type { Endpoint } from '../wire/sim.ts'

/** A call that may have to wait for its answer. */
export interface ParkedCall {
  /** Undefined for a call of the control API. */
  endpoint?: Endpoint
  botId?: string | undefined
  response?: ServerResponse
}

/** What a parked call waits for, and how long at most. */
interface Awaited<T> {
  key: string
  read: () => T[]
  waitMs: number
}

/** The calls that wait. */
export interface Parking {
  /** The first batch that `read` finds; an empty one when the time is up, the caller has gone, or `end` was called. */
  park<T>(call: ParkedCall, awaited: Awaited<T>): Promise<T[]>
  /** Lets the waiting calls that match be answered now. */
  end(match: (call: ParkedCall) => boolean): void
  /** Breaks the connections of the waiting calls that match. */
  cut(match: (call: ParkedCall) => boolean): void
  count(match: (call: ParkedCall) => boolean): number
  /** Ends all waits, and from here on nothing waits. */
  close(): void
}

/** An empty parking. */
export function createParking(doorbell: Doorbell): Parking {
  const parked = new Map<ParkedCall, () => void>()
  let closed = false

  return {
    async park(call, { key, read, waitMs }) {
      const wait = nextBatch(doorbell, key, read)
      const stop = () => wait.stop()
      // Few wait here (a poll per bot, a page per conversation, a login), so a timer each is cheap.
      const timer = setTimeout(stop, closed ? 0 : waitMs)
      parked.set(call, stop)
      call.response?.once('close', stop)
      try {
        return (await wait.batch) ?? []
      } finally {
        clearTimeout(timer)
        parked.delete(call)
        call.response?.off('close', stop)
      }
    },
    end(match) {
      for (const [call, stop] of parked) if (match(call)) stop()
    },
    cut(match) {
      for (const [call] of parked) if (match(call)) call.response?.destroy()
    },
    count: (match) => [...parked.keys()].filter(match).length,
    close() {
      closed = true
      for (const stop of parked.values()) stop()
    },
  }
}
