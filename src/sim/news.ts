import type { Doorbell } from '../kit/doorbell.ts'

/** The doorbell key of everything that a person who watches the sim might want to see. */
export const NEWS = 'news'

/** A doorbell that also counts what a person could see happen, and rings {@link NEWS} for it. */
export interface NewsDoorbell extends Doorbell {
  /** Greater after everything that happened. */
  readonly revision: number
}

/** Puts the count on a doorbell. What only bots wait for (their inboxes) is no news of its own. */
export function newsDoorbell(inner: Doorbell): NewsDoorbell {
  let revision = 0
  return {
    ring(key) {
      inner.ring(key)
      if (key.startsWith('inbox ')) return
      revision += 1
      inner.ring(NEWS)
    },
    listen: inner.listen,
    add: inner.add,
    remove: inner.remove,
    get revision() {
      return revision
    },
  }
}
