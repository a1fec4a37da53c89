import { withMembers, withoutMembers } from '../kit/lossless-json.ts'
import { conversationKey, type Entry } from './conversations.ts'
import type { ParkedCall } from './parking.ts'
import { userIdOf } from './user-id.ts'
import type { World } from './world.ts'

/** Which messages are asked for. */
export interface ConversationRequest {
  user: string
  bot?: string | undefined
  /** Only messages with a greater index. */
  after?: number
  /** How long to wait when there is no news; 0 when absent. */
  waitMs?: number
  /** The typing state the caller knows; another one is news. The present one when absent. */
  typing?: boolean
}

const ADDED = new Set(['index', 'from', 'text', 'message_id', 'at'])

/** A conversation as JSON text, each message with all its members, to the digit. */
export async function readConversation(
  world: World,
  request: ConversationRequest,
  call: ParkedCall = {},
): Promise<string> {
  const { after = 0, waitMs = 0 } = request
  const botId = world.bots.get(request.bot).id
  const userId = userIdOf(request.user)
  const find = () => world.conversations.find(botId, userId)
  const typing = request.typing ?? find()?.typing ?? false
  const isNews = () => (find()?.lastIndex ?? 0) > after || (find()?.typing ?? false) !== typing
  if (waitMs > 0) {
    const read = () => (isNews() ? [true] : [])
    await world.parking.park(call, { key: conversationKey(botId, userId), read, waitMs })
  }
  const entries = find()?.entries ?? []
  // Indexes have no gaps, so the first one tells where to start.
  const fresh = entries.slice(Math.max(0, after + 1 - (entries[0]?.index ?? 1)))
  const head = JSON.stringify({ user_id: userId, bot_id: botId, typing: find()?.typing ?? false })
  return `${head.slice(0, -1)},"messages":[${fresh.map(entryText).join(',')}]}`
}

function entryText({ index, from, text, messageId, at, raw }: Entry): string {
  const added = JSON.stringify({ index, from, text, message_id: messageId, at })
  return withMembers(withoutMembers(raw, ADDED), added.slice(1, -1))
}
