import type { Doorbell } from '../kit/doorbell.ts'

/** One message between a user and a bot. */
export interface Entry {
  /** Counts from 1 and stays when older entries are dropped. */
  index: number
  from: 'user' | 'bot'
  text: string
  messageId: string | null
  /** Unix milliseconds. */
  at: number
  /** The message as it was on the wire, JSON text. */
  raw: string
}

/** What a user and a bot have said to each other. */
export interface Conversation {
  readonly botId: string
  readonly userId: string
  readonly entries: Entry[]
  lastIndex: number
  typing: boolean
}

/** All conversations. A change rings {@link conversationKey}. */
export interface Conversations {
  /** Adds to a conversation, which begins with its first message. */
  append(botId: string, userId: string, entry: Omit<Entry, 'index'>): void
  find(botId: string, userId: string): Conversation | undefined
  setTyping(conversation: Conversation, typing: boolean): void
  /** Those that spoke last come last. */
  list(): Conversation[]
}

/** How much is kept. What goes first is the oldest of the conversation that has been silent longest. */
export interface ConversationBounds {
  mostEntries: number
  mostConversations: number
  /** Of all conversations together. */
  mostChars: number
}

const BOUNDS: ConversationBounds = { mostEntries: 10_000, mostConversations: 100_000, mostChars: 256 * 1024 * 1024 }

/** The doorbell key of a conversation, whether it has begun or not. */
export function conversationKey(botId: string, userId: string): string {
  return `conversation ${botId} ${userId}`
}

/** Conversations in memory, within bounds. */
export function createConversations(doorbell: Doorbell, bounds: ConversationBounds = BOUNDS): Conversations {
  // In the order of their last message: a Map keeps the order of insertion.
  const conversations = new Map<string, Conversation>()
  let chars = 0

  return {
    append(botId, userId, entry) {
      const key = conversationKey(botId, userId)
      const conversation = conversations.get(key) ?? { botId, userId, entries: [], lastIndex: 0, typing: false }
      conversations.delete(key)
      conversations.set(key, conversation)
      conversation.lastIndex += 1
      conversation.entries.push({ ...entry, index: conversation.lastIndex })
      chars += entry.raw.length
      if (conversation.entries.length > bounds.mostEntries) dropOldest(conversation)
      shrink()
      doorbell.ring(key)
    },
    find: (botId, userId) => conversations.get(conversationKey(botId, userId)),
    setTyping(conversation, typing) {
      if (conversation.typing === typing) return
      conversation.typing = typing
      doorbell.ring(conversationKey(conversation.botId, conversation.userId))
    },
    list: () => [...conversations.values()],
  }

  function dropOldest({ entries }: Conversation): void {
    chars -= entries.shift()?.raw.length ?? 0
  }

  function shrink(): void {
    for (const [key, oldest] of conversations) {
      const tooMany = conversations.size > bounds.mostConversations
      if (!tooMany && chars <= bounds.mostChars) return
      while (oldest.entries.length > 0 && (tooMany || chars > bounds.mostChars)) dropOldest(oldest)
      if (oldest.entries.length === 0) conversations.delete(key)
    }
  }
}
