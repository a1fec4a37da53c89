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

/** Nothing of it is lost in a crash: what is held back is stored, and only not told yet. */
export function openBacklog({ tell, holdMs }: BacklogOptions): Backlog {
  let positions = new Map<number, QueuePosition>()
  let fresh = new Map<number, Delivery[]>()
  let bytes = 0
  let timer: NodeJS.Timeout | null = null

  return {
    stored(newPositions, newFresh, isFull) {
      for (const position of newPositions) positions.set(position.clientId, position)
      for (const [clientId, deliveries] of newFresh) {
        const held = fresh.get(clientId)
        if (held === undefined) fresh.set(clientId, [...deliveries])
        else held.push(...deliveries)
        for (const delivery of deliveries) bytes += delivery.bytes
      }
      if (isFull && bytes < MOST_HELD_BYTES) timer ??= setTimeout(release, holdMs)
      else release()
    },
    release,
  }

  function release(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    if (positions.size === 0) return
    const held = { positions: [...positions.values()], fresh }
    positions = new Map()
    fresh = new Map()
    bytes = 0
    tell(held.positions, held.fresh)
  }
}
