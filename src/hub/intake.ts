import { randomFillSync } from 'node:crypto'
import { type Inbound, readInbound, replaceText, specJson } from './inbound.ts'
import type { Client, IngestBatch, IngestEntry, IngestResult, QueueBounds } from './model.ts'
import type { Registry } from './registry.ts'
import { type Clientele, clienteleOf, type RoutableClient, type Routing, type RoutingView, route } from './router.ts'
import type { HubStore } from './store/port.ts'
import type { UpstreamBatch } from './upstream/port.ts'

export interface IntakeOptions {
  store: Pick<HubStore, 'messages' | 'conversations' | 'sends'>
  registry: Registry
  account: string
  /** Names the service and bot that the cursor belongs to. */
  cursorSource: string
  bounds: QueueBounds
  prefix: string
  linkText: () => string
  now: () => number
  /** Called after the commit, never before. */
  onStored: (result: IngestResult, batch: IngestBatch) => void
}

/** An upstream batch that was looked through. */
export interface ReadBatch extends Omit<UpstreamBatch, 'parsed'> {
  at: number
  /** For each message what could be read, or why it could not. */
  inbounds: (Inbound | string)[]
}

/** Takes upstream batches: reads, routes and keeps them in one commit, then tells. */
export interface Intake {
  /** Looks through a batch; nothing is kept by it. */
  read(batch: UpstreamBatch): ReadBatch
  /** Keeps batches that follow each other, in one commit. */
  take(batches: readonly ReadBatch[]): Promise<void>
  /** Where a text from this user would go now; nothing is changed. */
  dryRun(userId: string, text: string): Promise<Routing>
}

export function createIntake(options: IntakeOptions): Intake {
  const { store, registry, account, now } = options
  const routable = routableClients(registry, account)

  return {
    read({ messages, parsed, cursor }) {
      const at = now()
      return { messages, cursor, at, inbounds: messages.map((source, index) => tryToRead(source, at, parsed?.[index])) }
    },
    async take(batches) {
      const last = batches.at(-1)
      if (last === undefined) return
      const clients = routable()
      // A `/use` in these batches counts for the user's next message in them.
      const chosen: Chosen = await store.conversations.chosen(account, new Set(batches.flatMap(usersOf)))
      const entries: IngestEntry[] = []
      for (const { at, messages, inbounds } of batches)
        for (const [index, inbound] of inbounds.entries()) {
          if (typeof inbound === 'string') entries.push(setAside(messages[index] ?? '', inbound, at))
          else if (inbound.fromBot) entries.push(entry(inbound, { state: 'suppressed', reason: 'bot_echo' }))
          else entries.push(await entryFor(inbound, at, clients, chosen))
        }
      const batch: IngestBatch = {
        account,
        cursor: last.cursor === null ? null : { source: options.cursorSource, value: last.cursor },
        now: last.at,
        entries,
        bounds: options.bounds,
      }
      options.onStored(await store.messages.ingest(batch), batch)
    },
    async dryRun(userId, text) {
      return route(text, viewFor(userId, null, routable(), await store.conversations.chosen(account, [userId])))
    },
  }

  async function entryFor(inbound: Inbound, at: number, clients: Clientele, chosen: Chosen): Promise<IngestEntry> {
    const { userId, quote, text } = inbound
    const quotedId = quote === null ? null : await store.sends.author(account, userId, quote, now())
    const routing = route(text, viewFor(userId, quotedId, clients, chosen))
    if (routing.choose !== undefined) chosen.set(userId.toLowerCase(), routing.choose)
    return routedEntry(inbound, routing, at)
  }

  function viewFor(userId: string, quotedId: number | null, clients: Clientele, chosen: Chosen): RoutingView {
    const chosenId = chosen.get(userId.toLowerCase()) ?? null
    return { clients, chosenId, quotedId, prefix: options.prefix, linkText: options.linkText() }
  }
}

function usersOf({ inbounds }: ReadBatch): string[] {
  return inbounds.flatMap((inbound) => (typeof inbound === 'string' ? [] : inbound.userId))
}

/** Whom users chose, by their ids in lower case. */
type Chosen = Map<string, number | null>

/** Whatever a message does to its reader, the batch it came in goes on. */
function tryToRead(source: string, at: number, parsed: unknown): Inbound | string {
  try {
    return readInbound(source, at, parsed)
  } catch {
    // No known message gets here. One that does must not hold up all that come after it.
    return 'it cannot be read'
  }
}

/** One that cannot be read is kept as it came, for a person to look at; the rest of its batch goes on. */
function setAside(source: string, problem: string, at: number): IngestEntry {
  const spec = specJson({ userId: '', content: '', msgType: 'text', timestamp: Math.floor(at / 1000) })
  const base = { upstreamId: null, fingerprint: null, userId: '', upstreamToken: null, deliveries: [], notices: [] }
  return { ...base, spec, raw: source, state: 'quarantined', reason: `malformed: ${problem}` }
}

function routedEntry(inbound: Inbound, routing: Routing, at: number): IngestEntry {
  const { text, targets, choose, state, reason, notices } = routing
  const seen = text === undefined ? inbound : { ...inbound, content: text, raw: replaceText(inbound.raw, text) }
  const deliveries = targets.map((clientId) => ({ clientId, contextToken: newContextToken(at) }))
  const routed = entry(seen, { state, reason, deliveries, notices })
  return choose === undefined ? routed : { ...routed, choose }
}

type Fate = Pick<IngestEntry, 'state' | 'reason'> & Partial<Pick<IngestEntry, 'deliveries' | 'notices'>>

function entry(inbound: Inbound, { state, reason, deliveries = [], notices = [] }: Fate): IngestEntry {
  const { upstreamId, fingerprint, userId, upstreamToken, raw } = inbound
  return {
    upstreamId,
    fingerprint,
    userId,
    upstreamToken,
    spec: specJson(inbound),
    raw,
    state,
    reason,
    deliveries,
    notices,
  }
}

const TOKEN_BYTES = 16
const TIME_CHARS = 9
// Filled for many tokens at once: a call for each would cost more than all else about a token.
const random = Buffer.alloc(256 * TOKEN_BYTES)
let randomUsed = random.length

/**
 * What a client passes back to answer: 128 random bits, behind the time. So the index of tokens grows at its end, where
 * random ones would cost a page of the log each.
 */
export function newContextToken(now: number): string {
  if (randomUsed === random.length) {
    randomFillSync(random)
    randomUsed = 0
  }
  randomUsed += TOKEN_BYTES
  return `ctx_${now.toString(36).padStart(TIME_CHARS, '0')}${random.toString('base64url', randomUsed - TOKEN_BYTES, randomUsed)}`
}

/** The clients of an account as routing sees them; made anew only when one comes, goes or changes: every batch asks. */
function routableClients(registry: Registry, account: string): () => Clientele {
  let all: readonly Client[] = []
  let routable = clienteleOf([])
  return () => {
    if (all !== registry.all()) {
      all = registry.all()
      const ours = all.filter((client) => client.account === null || client.account === account)
      routable = clienteleOf(ours.map((client) => liveView(client, registry)))
    }
    return routable
  }
}

function liveView(client: Client, registry: Registry): RoutableClient {
  return {
    id: client.id,
    name: client.name,
    get online() {
      return registry.isOnline(client)
    },
    get isDefault() {
      return client.isDefault
    },
    get fallback() {
      return client.fallback
    },
    get passthrough() {
      return client.passthrough
    },
  }
}
