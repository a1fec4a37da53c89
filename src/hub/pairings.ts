import { randomBytes } from 'node:crypto'
import { AppError } from '../kit/errors.ts'
import { sleep } from '../kit/retry.ts'
import type { Client } from './model.ts'

/** `pending`: nobody has looked. `opened`: an admin looks at it. `approved`: the client may fetch its token. */
export type PairingStatus = 'pending' | 'opened' | 'approved' | 'delivered' | 'rejected' | 'expired'

/** A client that asks to be let in, as an admin sees it. */
export interface PairingView {
  id: string
  status: PairingStatus
  /** The address the request came from. */
  from: string
  createdAt: number
  expiresAt: number
  /** The client it became. */
  name: string | null
}

/** What the client is told about its code. */
export type PairingNews =
  | { status: 'wait' | 'scaned' | 'expired' }
  | { status: 'confirmed'; client: Client; token: string; userId: string | null }

/** How a client is let in: under which client, with which token, and whose messages it may expect. */
export interface Admission {
  client: Client
  token: string
  userId: string | null
}

/** Clients that log in by QR code, each let in by an admin or not at all. In memory: after a restart they ask again. */
export interface Pairings {
  /** A code for a caller. Fails with `too_many_requests`. */
  begin(from: string): { id: string; qrcode: string }
  /** What is new about a code, or after some seconds that nothing is. The token is told once, to who holds the code. */
  news(qrcode: string, signal: AbortSignal): Promise<PairingNews>
  list(): PairingView[]
  /** An admin looks at it. Fails with `not_found`. */
  open(id: string): PairingView
  /** Lets the client in with what `admit` gives. Fails with `not_found` or `conflict`. */
  approve(id: string, admit: () => Promise<Admission>): Promise<PairingView>
  reject(id: string): PairingView
  /** Answers whoever waits. */
  close(): void
}

export interface PairingsOptions {
  now: () => number
  /** How long a call for news is held; between 5 and 10 s suits every client. */
  holdMs?: number
  /** Pause before a code that is over is told so: some clients ask again at once. */
  pauseMs?: number
}

const HOLD_MS = 8_000
const PAUSE_MS = 1_000
const LASTS_MS = 5 * 60_000
const FETCH_WITHIN_MS = 2 * 60_000
const KEPT_MS = 10 * 60_000
const MOST_PENDING = 50
const MOST_PENDING_EACH = 5
const MOST_KEPT = 200
const MOST_WAITING = 200
const MOST_BEGUN_A_MINUTE = 20
const OPEN: ReadonlySet<PairingStatus> = new Set(['pending', 'opened'])

interface Pairing extends PairingView {
  qrcode: string
  admission: Admission | null
  /** What the client heard last. */
  told: PairingNews['status']
  isBusy: boolean
  wake: Set<() => void>
}

/** No pairing yet. */
export function openPairings({ now, holdMs = HOLD_MS, pauseMs = PAUSE_MS }: PairingsOptions): Pairings {
  const pairings = new Map<string, Pairing>()
  const closing = new AbortController()
  let begun: { from: string; at: number }[] = []
  let waiting = 0

  return {
    begin(from) {
      sweep()
      refuseFlood(from)
      const id = randomBytes(9).toString('hex')
      // Not the id: who sees the page an admin approves on must not be able to fetch the token.
      const qrcode = randomBytes(16).toString('hex')
      const createdAt = now()
      pairings.set(id, {
        id,
        qrcode,
        status: 'pending',
        from,
        createdAt,
        expiresAt: createdAt + LASTS_MS,
        name: null,
        admission: null,
        told: 'wait',
        isBusy: false,
        wake: new Set(),
      })
      return { id, qrcode }
    },
    async news(qrcode, signal) {
      if (waiting >= MOST_WAITING)
        throw new AppError('too_many_requests', 'Too many clients wait to be paired; try again.', {
          retryAfterMs: 5_000,
        })
      waiting += 1
      try {
        return await newsOf(qrcode, signal)
      } finally {
        waiting -= 1
      }
    },
    list() {
      sweep()
      return [...pairings.values()].map(view)
    },
    open(id) {
      const pairing = find(id)
      if (pairing.status === 'pending') change(pairing, 'opened')
      return view(pairing)
    },
    async approve(id, admit) {
      const pairing = find(id)
      if (!OPEN.has(pairing.status) || pairing.isBusy) throw overAlready(pairing)
      pairing.isBusy = true
      try {
        pairing.admission = await admit()
      } finally {
        pairing.isBusy = false
      }
      pairing.name = pairing.admission.client.name
      pairing.expiresAt = now() + FETCH_WITHIN_MS
      change(pairing, 'approved')
      return view(pairing)
    },
    reject(id) {
      const pairing = find(id)
      if (!OPEN.has(pairing.status) || pairing.isBusy) throw overAlready(pairing)
      change(pairing, 'rejected')
      return view(pairing)
    },
    close: () => closing.abort(),
  }

  async function newsOf(qrcode: string, signal: AbortSignal): Promise<PairingNews> {
    const over = AbortSignal.any([signal, closing.signal])
    sweep()
    const pairing = [...pairings.values()].find((one) => one.qrcode === qrcode)
    if (pairing === undefined || saying(pairing) === 'expired') {
      await sleep(pauseMs, over)
      return { status: 'expired' }
    }
    if (saying(pairing) === pairing.told) await changed(pairing, over)
    sweep()
    const status = saying(pairing)
    // Who has hung up does not get the token: it would be lost, and it is told once.
    if (status === 'confirmed' && !over.aborted) return handOver(pairing)
    if (status !== 'confirmed') pairing.told = status
    return { status: status === 'confirmed' ? 'wait' : status }
  }

  function handOver(pairing: Pairing): PairingNews {
    const { admission } = pairing
    if (admission === null) return { status: 'expired' }
    pairing.admission = null
    change(pairing, 'delivered')
    return { status: 'confirmed', ...admission }
  }

  async function changed(pairing: Pairing, over: AbortSignal): Promise<void> {
    const woken = new AbortController()
    const wake = () => woken.abort()
    pairing.wake.add(wake)
    // Up to its end and no longer: an expired code is told as soon as it is.
    await sleep(Math.min(holdMs, Math.max(0, pairing.expiresAt - now()) + 1), AbortSignal.any([over, woken.signal]))
    pairing.wake.delete(wake)
  }

  function change(pairing: Pairing, status: PairingStatus): void {
    pairing.status = status
    for (const wake of pairing.wake) wake()
  }

  function find(id: string): Pairing {
    sweep()
    const pairing = pairings.get(id)
    if (pairing) return pairing
    throw new AppError('not_found', 'There is no such pairing; it is over, or never was. Start it again at the client.')
  }

  function refuseFlood(from: string): void {
    begun = begun.filter(({ at }) => now() - at < 60_000)
    const open = [...pairings.values()].filter(({ status }) => OPEN.has(status))
    const mine = open.filter((one) => one.from === from)
    const tooMany =
      open.length >= MOST_PENDING ||
      mine.length >= MOST_PENDING_EACH ||
      begun.filter((one) => one.from === from).length >= MOST_BEGUN_A_MINUTE
    if (tooMany) {
      throw new AppError('too_many_requests', 'Too many pairings wait for an admin; approve or reject some first.', {
        retryAfterMs: 30_000,
      })
    }
    begun.push({ from, at: now() })
  }

  function sweep(): void {
    for (const pairing of pairings.values()) {
      const { id, status, expiresAt } = pairing
      if (now() < expiresAt) continue
      if (OPEN.has(status) || status === 'approved') {
        pairing.admission = null
        change(pairing, 'expired')
      } else if (now() - expiresAt > KEPT_MS) pairings.delete(id)
    }
    const over = [...pairings.values()].filter(({ status }) => !OPEN.has(status) && status !== 'approved')
    for (const { id } of over.slice(0, Math.max(0, over.length - MOST_KEPT))) pairings.delete(id)
  }
}

function saying({ status }: Pairing): PairingNews['status'] {
  if (status === 'pending') return 'wait'
  if (status === 'opened') return 'scaned'
  return status === 'approved' ? 'confirmed' : 'expired'
}

function overAlready({ status, isBusy }: Pairing): AppError {
  return new AppError('conflict', `This pairing is ${isBusy ? 'being approved' : status} already.`)
}

function view({ id, status, from, createdAt, expiresAt, name }: Pairing): PairingView {
  return { id, status, from, createdAt, expiresAt, name }
}
