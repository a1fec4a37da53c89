import type {
  Client,
  ClientToken,
  ContextOwner,
  Conversation,
  DeadLetter,
  DeathReason,
  Delivery,
  IngestBatch,
  IngestResult,
  KnownSend,
  MessageRecord,
  MessageState,
  NewSend,
  Notice,
  PendingSend,
  QueuePosition,
  SendRecord,
  SendState,
  Settlement,
} from '../model.ts'

/**
 * What the hub keeps. Every promise that resolves after a write resolves after the write is durable, unless its doc says
 * `lazy`. Reads see every write whose promise has resolved.
 */
export interface HubStore {
  readonly clients: ClientStore
  readonly messages: MessageStore
  readonly deliveries: DeliveryStore
  readonly deadLetters: DeadLetterStore
  readonly conversations: ConversationStore
  readonly sends: SendStore
  readonly credentials: CredentialStore
  /** Null where one commit is all that is wanted before the service is asked for more. */
  readonly inbox: InboxStore | null
  /** A random id made with the store, so that a cursor of another hub is told from ours. */
  readonly hubId: string
  /** Writes what is still lazy, then closes. */
  close(): Promise<void>
}

/** The registered clients and their tokens. */
export interface ClientStore {
  /** Every client and every token, for the registry that is kept in memory. */
  load(): Promise<{ clients: Client[]; tokens: ClientToken[] }>
  /** Fails with `name_taken` when a client has that name in any case. */
  create(client: {
    name: string
    label: string
    fallback: boolean
    /** The bot account it is for; all when absent. */
    account?: string | null
    tokenHash: string
    now: number
  }): Promise<Client>
  /** Changes what is given; `isDefault: true` takes the mark from whoever had it. Fails with `not_found`. */
  update(id: number, patch: ClientPatch): Promise<Client>
  /** Replaces all tokens of a client. Fails with `not_found`. */
  setTokens(id: number, tokens: ClientToken[]): Promise<void>
  /** Forgets a client: its queue becomes dead letters (`client_removed`), its tokens and routes go. Returns how many died. */
  remove(id: number, now: number): Promise<number>
  /** Lazy: remembers when clients were last seen. */
  touch(seen: { id: number; lastSeen: number; stopped: boolean }[]): void
}

export interface ClientPatch {
  label?: string
  isDefault?: boolean
  fallback?: boolean
  passthrough?: string[]
  account?: string | null
}

/** What came from upstream, and where the next poll goes on. */
export interface MessageStore {
  /**
   * Keeps a batch in one commit: messages, deliveries at the tail of their queues, chosen routes, newest context tokens,
   * notices as sends, and the cursor. A message whose upstream id (30 days) or fingerprint is known, is stored as
   * `suppressed` with `duplicateOf`, and nothing else of its entry happens. A delivery to a client that has gone becomes a
   * dead letter. Past its bounds a queue loses its oldest messages to the dead letters (`overflow`). An entry whose state is
   * `unrouted` becomes a dead letter without a client (`no_client`). The positions it returns do not know what was given
   * to `settle` since: of two fronts the further one is true.
   */
  ingest(batch: IngestBatch): Promise<IngestResult>
  /** Where the upstream poll goes on; empty when nothing is known for this source. */
  cursor(account: string, source: string): Promise<string>
  /** Newest first. The `spec` of a message whose text is gone is empty. */
  list(filter: MessageFilter): Promise<MessageRecord[]>
  /** Puts the message into the client's queue again, at the tail, with the context token it had; one that still waits stays where it is. Null when there is no such delivery or its text is gone. */
  replay(messageId: number, clientId: number, now: number): Promise<QueuePosition | null>
  /** Forgets old rows in small steps; resolves with how many went. Texts after 7 days, ids after 30; what waits in a queue or is a dead letter stays. */
  prune(now: number): Promise<number>
}

export interface MessageFilter {
  clientId?: number
  account?: string
  userId?: string
  state?: MessageState
  /** Only messages with a smaller id. */
  before?: number
  limit: number
}

/** The queues. */
export interface DeliveryStore {
  /** Where every queue stands. */
  positions(): Promise<QueuePosition[]>
  /** What stands after `afterSeq` and is alive, oldest first, at most `limit`, nothing queued before `since`. Never waits. */
  read(clientId: number, afterSeq: number, limit: number, since: number): Promise<Delivery[]>
  /**
   * Lazy: moves positions. Calls for one client may be merged into one write; `flush` makes them durable now. `settledSeq`
   * never goes back, `sentSeq` is taken as it is given, and neither passes the tail.
   */
  settle(settlement: Settlement): void
  /** Resolves when all that was given to `settle` for this client is durable; without a client all of it, and of `touch`. */
  flush(clientId?: number): Promise<void>
  /** Takes the oldest messages of a queue, up to `throughSeq`, to the dead letters and tells their users; `{client}` as in `QueueBounds`. Fails with `not_found`. */
  bury(clientId: number, throughSeq: number, reason: DeathReason, now: number, notice?: Notice): Promise<Burial>
  /** Whom a context token of ours speaks of. */
  resolveContext(contextToken: string): Promise<ContextOwner | null>
}

/** What a {@link DeliveryStore.bury} did: the queue as it is now, and the notices that are to be sent. */
export interface Burial {
  position: QueuePosition
  count: number
  sends: PendingSend[]
}

export interface DeadLetterStore {
  /** Newest first. */
  list(filter: { clientId?: number; reason?: DeathReason; before?: number; limit: number }): Promise<DeadLetter[]>
  count(): Promise<number>
  /** Puts it at the tail of its client's queue, or of `clientId`'s. Null when there is no such letter; `client_gone` without a client to go to. */
  replay(id: number, clientId: number | null, now: number, contextToken: string): Promise<QueuePosition | null>
  /** True when there was one. */
  discard(id: number, now: number): Promise<boolean>
}

export interface ConversationStore {
  /** By account and user; the user's id counts in any case. */
  get(account: string, userId: string): Promise<Conversation | null>
  /** Whom these users chose, by their ids in lower case; who chose nobody is not there. */
  chosen(account: string, userIds: Iterable<string>): Promise<Map<string, number>>
  /** Conversations a client has taken part in. Used to accept a reply that names the user and no token. */
  hasSeen(clientId: number, account: string, userId: string): Promise<boolean>
  /** In the order of account and user, after that of `after`. */
  list(filter: { userId?: string; after?: { account: string; userId: string }; limit: number }): Promise<Conversation[]>
  /** A client that has gone is nobody. */
  choose(account: string, userId: string, clientId: number | null): Promise<void>
}

/** What goes to users. */
export interface SendStore {
  /** Keeps a send before anything of it is told to the upstream. */
  begin(send: NewSend): Promise<PendingSend>
  /** The newest send of this client under this key and body since `since`. */
  find(clientId: number, key: string, bodyHash: string, since: number): Promise<KnownSend | null>
  /** Records how parts went. Durable when awaited. Part states also count the conversation's `sendsUsed`. */
  progress(update: SendProgress): Promise<void>
  /** After a restart: marks what was in flight as `unknown`, and returns what still has to go out (later parts of answered sends, the hub's own notices younger than 10 minutes). */
  recover(now: number): Promise<PendingSend[]>
  /** Newest first. */
  list(filter: { userId?: string; before?: number; limit: number }): Promise<SendRecord[]>
  /** Which client wrote what the user quotes: by the upstream's id, else by the exact text within a day. */
  author(
    account: string,
    userId: string,
    quote: { upstreamId?: string; text?: string },
    now: number,
  ): Promise<number | null>
}

/** How many answers for an account and service the inbox holds. The one after that takes the place of the first, which must be stored by then. */
export const INBOX_PLACES = 16

/** Answers of the service, as they came: durable in one short write, so that the next can be asked for while they are stored. */
export interface InboxStore {
  /** Durable when it resolves. */
  keep(account: string, entry: InboxEntry): Promise<void>
  /** What was kept and is not stored yet, in order. Where the store stands shows what that is: each entry says where it was asked from. */
  due(account: string, source: string, cursor: string): Promise<InboxEntry[]>
  /** All that was kept is stored: forgets it. */
  clear(account: string, source: string): Promise<void>
}

/** An answer of the service. */
export interface InboxEntry {
  /** Names the service and bot that the cursors belong to. */
  source: string
  /** The cursor it was asked for with. */
  after: string
  cursor: string
  messages: string[]
}

/** The logins of the bot accounts, encrypted: the store sees nothing of what is in them. */
export interface CredentialStore {
  load(): Promise<{ account: string; sealed: string }[]>
  save(account: string, sealed: string, now: number): Promise<void>
  remove(account: string): Promise<void>
}

export interface SendProgress {
  sendId: number
  parts: { part: number; state: SendState; upstreamId?: string | null }[]
  /** State of the whole, and the answer given to the client. */
  state?: SendState
  answer?: string
  now: number
}
