import type { Delivery, QueuePosition } from './model.ts'

/** Holds back what was stored, while more of the same is on its way, so that polls get several batches in one answer. */
export interface Backlog {
  /** `isFull`: the service gave so much at once that more waits there already. */
  stored(positions: readonly QueuePosition[], fresh: ReadonlyMap<number, Delivery[]>, isFull: boolean): void
  /** Tells what is held back. */
  release(): void
}

export interface BacklogOptions {
  tell: (positions: QueuePosition[], fresh: ReadonlyMap<number, Delivery[]>) => void
  /** The longest that anything is held back. */
  holdMs: number
}

const MOST_HELD_BYTES = 4 * 1024 * 1024
/** So many clients are told in one turn of the event loop: each gets its answer written then. */
const CLIENTS_A_TURN = 16

interface Held {
  position: QueuePosition
  deliveries: Delivery[]
}

/** Nothing of it is lost in a crash: what is held back is stored, and only not told yet. */
export function openBacklog({ tell, holdMs }: BacklogOptions): Backlog {
  let held = new Map<number, Held>()
  let bytes = 0
  let timer: NodeJS.Timeout | null = null
  let due: Held[] = []
  let isTelling = false

  return {
    stored(positions, fresh, isFull) {
      for (const position of positions) hold(position, fresh.get(position.clientId) ?? [])
      if (isFull && bytes < MOST_HELD_BYTES) timer ??= setTimeout(release, holdMs)
      else release()
    },
    release,
  }

  function hold(position: QueuePosition, deliveries: readonly Delivery[]): void {
    const known = held.get(position.clientId)
    if (known === undefined) held.set(position.clientId, { position, deliveries: [...deliveries] })
    else {
      known.position = position
      known.deliveries.push(...deliveries)
    }
    for (const delivery of deliveries) bytes += delivery.bytes
  }

  function release(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    due = [...due, ...held.values()]
    held = new Map()
    bytes = 0
    if (!isTelling) tellSome()
  }

  function tellSome(): void {
    const some = due.slice(0, CLIENTS_A_TURN)
    due = due.slice(CLIENTS_A_TURN)
    isTelling = due.length > 0
    if (isTelling) setImmediate(tellSome)
    if (some.length === 0) return
    tell(
      some.map(({ position }) => position),
      new Map(some.map(({ position, deliveries }) => [position.clientId, deliveries])),
    )
  }
}
