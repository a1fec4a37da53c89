/** How much went through for each client, minute by minute. In memory: after a restart it starts anew. */
export interface Traffic {
  count(clientId: number, way: keyof Minutes, messages?: number): void
  /** A number a minute, the present one last. */
  read(clientId: number): Minutes
  forget(clientId: number): void
}

export interface Minutes {
  /** Messages that came for it. */
  received: number[]
  /** Messages it sent to users. */
  sent: number[]
}

/** As far back as it looks. */
const MINUTES = 30

/** Counts from now on. A client that nothing happens to costs nothing. */
export function createTraffic(now: () => number): Traffic {
  const clients = new Map<number, Minutes & { minute: number }>()
  const present = () => Math.floor(now() / 60_000)

  return {
    count(clientId, way, messages = 1) {
      const known = moved(clientId) ?? { minute: present(), received: none(), sent: none() }
      clients.set(clientId, known)
      known[way][MINUTES - 1] = (known[way][MINUTES - 1] ?? 0) + messages
    },
    read(clientId) {
      const known = moved(clientId)
      return { received: known?.received.slice() ?? none(), sent: known?.sent.slice() ?? none() }
    },
    forget: (clientId) => void clients.delete(clientId),
  }

  /** The client's counts with the present minute in the last place. */
  function moved(clientId: number) {
    const known = clients.get(clientId)
    if (known === undefined) return undefined
    const passed = Math.min(MINUTES, Math.max(0, present() - known.minute))
    for (const numbers of [known.received, known.sent]) {
      numbers.splice(0, passed)
      while (numbers.length < MINUTES) numbers.push(0)
    }
    known.minute = Math.max(known.minute, present())
    return known
  }
}

function none(): number[] {
  return new Array(MINUTES).fill(0)
}
