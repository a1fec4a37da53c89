import { type Static, Type } from 'typebox'
import { AppError } from '../kit/errors.ts'
import { rawMember } from '../kit/lossless-json.ts'
import type { Bot } from './bots.ts'
import type { Conversation } from './conversations.ts'
import { textOf } from './items.ts'
import type { World } from './world.ts'

const Item = Type.Object({
  type: Type.Integer(),
  text_item: Type.Optional(Type.Object({ text: Type.String() })),
})

/** What a bot sends; members that are not checked are kept as they come. */
export const SendBody = Type.Object({
  msg: Type.Object({
    to_user_id: Type.String({ minLength: 1 }),
    item_list: Type.Array(Item, { minItems: 1 }),
  }),
})
export type SendBody = Static<typeof SendBody>

const TEXT = 1
const MOST_TEXT_CHARS = 5_000 // above this the real service answers -2 "prepare failed"

/** Puts a bot's message, once it is checked, into the user's conversation and returns its id. */
export function receive(world: World, bot: Bot, { msg }: SendBody, bodyText: string): string {
  const messageId = world.nextMessageId()
  bot.sends += 1
  world.conversations.append(bot.id, msg.to_user_id, {
    from: 'bot',
    text: textOf(msg.item_list),
    messageId,
    at: world.now(),
    raw: rawMember(bodyText, 'msg') ?? '{}',
  })
  return messageId
}

/** Fails with `bad_request` or `unknown_user` when the message could not be sent. */
export function checkSend(world: World, bot: Bot, msg: SendBody['msg']): void {
  for (const { type, text_item } of msg.item_list) {
    if (type !== TEXT) continue
    if (!text_item?.text) throw new AppError('bad_request', 'text_item.text required')
    if (text_item.text.length > MOST_TEXT_CHARS) throw new AppError('bad_request', 'prepare failed')
  }
  knownUser(world, bot, msg.to_user_id)
}

/** The conversation with somebody who has spoken to the bot; ids count to the letter. Fails with `unknown_user`. */
export function knownUser(world: World, bot: Bot, userId: string): Conversation {
  const conversation = world.conversations.find(bot.id, userId)
  if (conversation === undefined) throw new AppError('unknown_user', 'unknown user')
  return conversation
}
