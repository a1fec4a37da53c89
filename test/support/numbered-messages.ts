/** What one client got: batches in order, each with the number of kills there had been. */
export interface Ledger {
  batches: {
    texts: string[]
    kills: number
    askedAt: number
    gotAt: number
    /** From here on the hub has stored that it arrived. */
    settledAt: number
  }[]
}

/** A hub that is told with a poll that a batch arrived stores it with its next write, or by itself, so much later at most. */
const STORED_WITHIN_MS = 3_000

/** Messages that were another client's. */
export function strangers(batches: Ledger['batches'], client: number, clients: number): string[] {
  return batches.flatMap(({ texts }) => texts).filter((text) => Number(text.split(' ')[1]) % clients !== client)
}

/** Messages that came twice although they were not in the last batch before a kill. */
export function repeatedWithoutCause(batches: Ledger['batches']): string[] {
  const seenIn = new Map<string, number>()
  const wrong: string[] = []
  for (const [index, { texts, kills }] of batches.entries()) {
    for (const text of texts) {
      const before = seenIn.get(text)
      seenIn.set(text, index)
      if (before === undefined) continue
      const lastBeforeKill = batches.slice(before + 1, index).every((between) => between.kills > batches[before]!.kills)
      if (!lastBeforeKill || kills === batches[before]!.kills) wrong.push(text)
    }
  }
  return wrong
}

interface ClientOptions {
  /** Which hub the next poll goes to. */
  url: () => string
  token: string
  withCursor: boolean
  ledger: Ledger
  kills: () => number
  signal: AbortSignal
}

/** A client that polls for ever and writes down what it gets. */
export async function runClient({ url, token, withCursor, ledger, kills, signal }: ClientOptions): Promise<void> {
  let cursor = ''
  while (!signal.aborted) {
    const askedAt = Date.now()
    try {
      const body = withCursor ? { get_updates_buf: cursor } : { token }
      const response = await fetch(`${url()}/relay/bot/getupdates`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
      })
      const answer: { messages?: { content: string }[]; get_updates_buf?: string } = JSON.parse(await response.text())
      if (!response.ok || answer.messages === undefined) throw new Error('refused')
      const gotAt = Date.now()
      const last = ledger.batches.at(-1)
      // Before more goes out, what the poll said of the last batch is stored; with an empty answer it need not be yet.
      if (last) last.settledAt = Math.min(last.settledAt, answer.messages.length > 0 ? gotAt : gotAt + STORED_WITHIN_MS)
      if (answer.messages.length > 0)
        ledger.batches.push({
          texts: answer.messages.map(({ content }) => content),
          kills: kills(),
          askedAt,
          gotAt,
          settledAt: Number.POSITIVE_INFINITY,
        })
      cursor = answer.get_updates_buf ?? cursor
    } catch {
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
}

export async function register(url: string, name: string): Promise<string> {
  const response = await fetch(`${url}/hub/register`, { method: 'POST', body: JSON.stringify({ name }) })
  const { token }: { token: string } = JSON.parse(await response.text())
  return token
}

export async function say(simUrl: string, messages: { user: string; text: string }[]): Promise<void> {
  const response = await fetch(`${simUrl}/sim/say`, { method: 'POST', body: JSON.stringify({ messages }) })
  if (!response.ok) throw new Error(await response.text())
  await response.text()
}

/** Resolves when the user's choice of a client has been confirmed. */
export async function untilAnswered(simUrl: string, user: string): Promise<void> {
  const deadline = Date.now() + 30_000
  for (;;) {
    const text = await (await fetch(`${simUrl}/sim/conversation?user=${user}`)).text()
    if (text.includes('You now talk to')) return
    if (Date.now() > deadline) throw new Error(`no answer to ${user}: ${text}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** When something was hurt: a moment, or as long as it was away. */
export interface Hurt {
  from: number
  to: number
}

/**
 * Messages that came twice although the first batch they were in was not in flight when something was hurt: asked for
 * before, and not known as received yet. A client that brings its cursor says itself what it has: nothing comes twice.
 */
export function repeatedInPeace({ batches }: Ledger, hurts: readonly Hurt[], withCursor: boolean): string[] {
  const first = new Map<string, Ledger['batches'][number]>()
  const wrong: string[] = []
  for (const batch of batches) {
    for (const text of batch.texts) {
      const before = first.get(text)
      first.set(text, batch)
      if (before === undefined) continue
      const inFlight = hurts.some(({ from, to }) => from < before.settledAt && to > before.askedAt)
      if (withCursor || !inFlight) wrong.push(text)
    }
  }
  return wrong
}
