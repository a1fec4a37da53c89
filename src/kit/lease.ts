/** The right to work on something, given to one owner at a time. */
export interface Claim {
  readonly key: string
  /** Greater than that of every claim on this key before: who writes shows it, and an older one is refused. */
  readonly generation: number
}

/** Who works on what. A lease that is not renewed in time is free again; its old claim is worth nothing then. */
export interface Lease {
  /** Null when somebody who lives holds it. */
  claim(key: string): Promise<Claim | null>
  /** Holds on to the claims. Returns those that are lost. */
  renew(claims: readonly Claim[]): Promise<Claim[]>
  /** Gives it back; a claim that is lost already is nothing. */
  release(claim: Claim): Promise<void>
}

/** The leases of one process, for stores that live in it. */
export interface LocalLease extends Lease {
  /** A new claim, whoever held the one before. For a store that knows the holder's work to be over. */
  grant(key: string): Claim
  holds(claim: Claim): boolean
  drop(claim: Claim): void
}

/** Leases that end with the process. Nothing is kept for a key that nobody holds. */
export function memoryLease({ now, lifeMs }: { now: () => number; lifeMs: number }): LocalLease {
  const held = new Map<string, { generation: number; until: number }>()
  let generation = 0

  const lease: LocalLease = {
    async claim(key) {
      const present = held.get(key)
      return present !== undefined && present.until > now() ? null : lease.grant(key)
    },
    async renew(claims) {
      return claims.filter((claim) => {
        if (!lease.holds(claim)) return true
        held.set(claim.key, { generation: claim.generation, until: now() + lifeMs })
        return false
      })
    },
    release: async (claim) => lease.drop(claim),
    grant(key) {
      generation += 1
      held.set(key, { generation, until: now() + lifeMs })
      return { key, generation }
    },
    holds({ key, generation: own }) {
      const present = held.get(key)
      return present !== undefined && present.generation === own && present.until > now()
    },
    drop({ key, generation: own }) {
      if (held.get(key)?.generation === own) held.delete(key)
    },
  }
  return lease
}
