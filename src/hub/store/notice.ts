import { randomBytes } from 'node:crypto'

/** The upstream's `msg` object (without recipient and context token) that says `text` in the hub's own name, as JSON text. */
export function noticeBody(text: string): string {
  return JSON.stringify({
    item_list: [{ type: 1, text_item: { text } }],
    message_type: 2,
    message_state: 2,
    client_id: `hub-${randomBytes(8).toString('hex')}`,
  })
}
