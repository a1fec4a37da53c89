import type { ActiveFault, Endpoint, FaultBody, FaultKind } from '../wire/sim.ts'

/** Where a fault might strike. `bot` is the id of the account, where there is one. */
interface Spot {
  bot?: string | undefined
  endpoint?: Endpoint
}

/** What goes wrong at the moment, on purpose. */
export interface Faults {
  /** `body.bot` is an account's id here. */
  add(body: FaultBody): ActiveFault
  /** The oldest fault of this kind that strikes here; it has then happened once more. */
  take(kind: FaultKind, spot?: Spot): FaultBody | undefined
  /** Tells whether a fault of this kind is in force here, without letting it happen. */
  has(kind: FaultKind, spot?: Spot): boolean
  list(): ActiveFault[]
  /** Ends the faults that match; returns how many. */
  clear(match?: (fault: ActiveFault) => boolean): number
}

/** No faults yet. */
export function createFaults(now: () => number): Faults {
  let faults: ActiveFault[] = []
  let lastId = 0

  return {
    add(body) {
      lastId += 1
      const until = body.for_ms === undefined ? null : now() + body.for_ms
      const fault = { ...body, id: lastId, left: body.count ?? (body.kind === 'malformed' ? 1 : null), until }
      faults.push(fault)
      return { ...fault }
    },
    take(kind, spot) {
      const fault = find(kind, spot)
      if (fault === undefined || fault.left === null) return fault
      fault.left -= 1
      if (fault.left === 0) faults = faults.filter((other) => other !== fault)
      return fault
    },
    has: (kind, spot) => find(kind, spot) !== undefined,
    list() {
      forgetEnded()
      return faults.map((fault) => ({ ...fault }))
    },
    clear(match = () => true) {
      const kept = faults.filter((fault) => !match(fault))
      const cleared = faults.length - kept.length
      faults = kept
      return cleared
    },
  }

  function find(kind: FaultKind, { bot, endpoint }: Spot = {}): ActiveFault | undefined {
    if (faults.length === 0) return undefined
    forgetEnded()
    return faults.find(
      (fault) =>
        fault.kind === kind &&
        (fault.bot === undefined || fault.bot === bot) &&
        (fault.only === undefined || fault.only === endpoint),
    )
  }

  function forgetEnded(): void {
    const at = now()
    if (faults.some(({ until }) => until !== null && until <= at)) {
      faults = faults.filter(({ until }) => until === null || until > at)
    }
  }
}
