import type { FaultBody } from '../../wire/sim.ts'
import type { Bot } from '../bots.ts'
import type { World } from '../world.ts'

/** The answer to `getupdates` as JSON text, so that ids keep all their digits; faults of the answer strike here. */
export function updatesText(world: World, bot: Bot, batch: ReturnType<Bot['inbox']['read']>): string {
  const cursor = bot.inbox.handOut(batch)
  const messages = batch.map(({ text }) => text)
  const malformed = messages.length > 0 ? world.faults.take('malformed', { bot: bot.id }) : undefined
  if (malformed) messages.splice(messages.length >> 1, 0, malformedText(world, malformed.shape))
  const text = `{"ret":0,"msgs":[${messages.join(',')}],"get_updates_buf":"${cursor}","longpolling_timeout_ms":${world.holdMs}}`
  return world.faults.take('bad_json', { bot: bot.id }) ? text.slice(0, text.length >> 1) : text
}

function malformedText(world: World, shape: FaultBody['shape']): string {
  if (shape === undefined || shape === 'not_an_object') return '"not an object"'
  const head = `"message_id":${world.nextMessageId()},"message_type":1,"message_state":2,"context_token":"malformed"`
  if (shape === 'no_sender') return `{${head},"item_list":[{"type":1,"text_item":{"text":"from nobody"}}]}`
  return `{${head},"from_user_id":"malformed@im.wechat","item_list":"not a list"}`
}
