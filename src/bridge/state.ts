/** A user's message that the bridge has taken from the hub. */
export interface Taken {
  /** Counts all messages this bridge took; the service's id may come again when an operator replays a message. */
  n: number
  id: string
  /** The name of its conversation: see `conversationName`. */
  user: string
  /** The bot account it was written to; absent where the hub does not tell, and in journals of before. */
  account?: string
  contextToken: string
  text: string
  /** What came with the text, in words: a quote, pictures, files. Empty for most. */
  beside: string
}

/** One run for one or more messages of a conversation, until its answer is with the user. */
export interface Turn {
  messages: Taken[]
  /** 1, and one more each time it had to be begun again. */
  attempt: number
  /** Null until the agent has accepted it. */
  run: string | null
  /** Events of the session up to this one have been dealt with. */
  after: number
  /** The plan that waits for the user's word. */
  plan: string | null
  /** Whether the user has heard anything of this run. */
  spoke: boolean
  /** The part that was on its way to the user last. */
  sending: { key: string; part: number; at: number } | null
}

/** One conversation: one session of the agent at a time. */
export interface Conversation {
  user: string
  /** The bot account it is held with, once that is known. */
  account?: string
  session: string | null
  /** How many sessions there were before. */
  generation: number
  /** The model the user chose; null: the agent's own. */
  model: string | null
  /** Of the newest message. */
  contextToken: string
  /** Taken, and in no turn yet. */
  waiting: Taken[]
  turn: Turn | null
}

/** What the journal holds. */
export type BridgeRecord =
  | { t: 'bridge'; version: 1; id: string; cursor: string; n: number }
  | { t: 'conversation'; conversation: Conversation }
  | { t: 'took'; cursor: string; messages: Taken[] }
  | { t: 'session'; user: string; session: string | null; generation: number }
  | { t: 'model'; user: string; model: string | null }
  /** Everything that waits becomes a turn. */
  | { t: 'turn'; user: string; count: number }
  | { t: 'run'; user: string; run: string; after: number }
  | { t: 'again'; user: string; attempt: number }
  | { t: 'sending'; user: string; key: string; part: number; at: number }
  | { t: 'told'; user: string; after: number }
  | { t: 'plan'; user: string; plan: string | null; after: number }
  /** Messages that are dealt with outside of a turn. */
  | { t: 'dealt'; user: string; ns: number[] }
  | { t: 'done'; user: string }

/** All that a bridge remembers. */
export interface BridgeState {
  /** Part of every key, so that two bridges never use the same one. */
  id: string
  cursor: string
  /** The number of the last message taken. */
  n: number
  conversations: Map<string, Conversation>
}

/** The state of a bridge that has seen nothing yet. */
export function emptyState(id: string): BridgeState {
  return { id, cursor: '', n: 0, conversations: new Map() }
}

/** Records that make this state. */
export function snapshotOf({ id, cursor, n, conversations }: BridgeState): BridgeRecord[] {
  const all = [...conversations.values()].map((conversation) => ({ t: 'conversation' as const, conversation }))
  return [{ t: 'bridge', version: 1, id, cursor, n }, ...all]
}

/**
 * The name of the conversation of a user with a bot account: the user's id, and for a second account the account as well.
 * A conversation from before accounts were told belongs to the first account that the user writes to. `claimed` has what
 * messages of the same batch made of it already.
 */
export function conversationName(
  { conversations }: BridgeState,
  { user, account }: { user: string; account: string | null },
  claimed: Map<string, string>,
): string {
  if (account === null) return user
  const owner = conversations.get(user)?.account ?? claimed.get(user) ?? account
  claimed.set(user, owner)
  return owner === account ? user : `${user} (${account})`
}

/** Changes the state by one record. */
export function applyRecord(state: BridgeState, record: BridgeRecord): void {
  switch (record.t) {
    case 'bridge':
      state.id = record.id
      state.cursor = record.cursor
      state.n = record.n
      return
    case 'conversation':
      state.conversations.set(record.conversation.user, record.conversation)
      return
    case 'took':
      state.cursor = record.cursor
      for (const message of record.messages) take(state, message)
      return
    default: {
      const conversation = state.conversations.get(record.user)
      if (conversation !== undefined) change(conversation, record)
    }
  }
}

type Change = Exclude<BridgeRecord, { t: 'bridge' | 'conversation' | 'took' }>

function change(conversation: Conversation, record: Change): void {
  switch (record.t) {
    case 'session':
      conversation.session = record.session
      conversation.generation = record.generation
      return
    case 'model':
      conversation.model = record.model
      return
    case 'turn':
      conversation.turn = newTurn(conversation.waiting.splice(0, record.count))
      return
    case 'dealt':
      conversation.waiting = conversation.waiting.filter(({ n }) => !record.ns.includes(n))
      return
    case 'done':
      conversation.turn = null
      return
    default:
      if (conversation.turn !== null) changeTurn(conversation.turn, record)
  }
}

type TurnChange = Exclude<Change, { t: 'session' | 'model' | 'turn' | 'dealt' | 'done' }>

function changeTurn(turn: Turn, record: TurnChange): void {
  switch (record.t) {
    case 'run':
      turn.run = record.run
      turn.after = record.after
      return
    case 'again':
      Object.assign(turn, newTurn(turn.messages), { attempt: record.attempt })
      return
    case 'sending':
      turn.sending = { key: record.key, part: record.part, at: record.at }
      return
    case 'told':
      turn.after = record.after
      turn.spoke = true
      turn.sending = null
      return
    case 'plan':
      turn.plan = record.plan
      turn.after = record.after
      turn.sending = null
  }
}

function take(state: BridgeState, message: Taken): void {
  state.n = Math.max(state.n, message.n)
  const known = state.conversations.get(message.user)
  if (known === undefined) {
    state.conversations.set(message.user, {
      user: message.user,
      ...(message.account === undefined ? {} : { account: message.account }),
      session: null,
      generation: 0,
      model: null,
      contextToken: message.contextToken,
      waiting: [message],
      turn: null,
    })
    return
  }
  if (message.account !== undefined) known.account ??= message.account
  known.contextToken = message.contextToken
  known.waiting.push(message)
}

function newTurn(messages: Taken[]): Turn {
  return { messages, attempt: 1, run: null, after: 0, plan: null, spoke: false, sending: null }
}
