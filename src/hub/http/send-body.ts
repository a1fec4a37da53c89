import { AppError } from '../../kit/errors.ts'
import { rawMember } from '../../kit/lossless-json.ts'
import { checker } from '../../kit/schema.ts'
import { SendMessageBody, SendTextBody } from '../../wire/relay.ts'
import { type Composed, composeMessage, composeText } from '../compose.ts'

/** What a sendmessage body asks for, whichever shape it has. */
export interface SendRequest {
  contextToken: string | undefined
  userId: string | undefined
  message: Composed
}

const checkText = checker(SendTextBody)
const checkMessage = checker(SendMessageBody)
const MAX_KEY = 256
const TEXT = 1

/** Tells the two shapes apart by their keys, never by who sends them. */
export function readSend(body: unknown, bodyText: string, keyHeader: string | string[] | undefined): SendRequest {
  const key = typeof keyHeader === 'string' && keyHeader !== '' ? keyHeader : null
  if (key !== null && key.length > MAX_KEY)
    throw new AppError('bad_request', `Idempotency-Key is longer than ${MAX_KEY} characters.`)
  const request = typeof body === 'object' && body !== null && 'msg' in body ? readReal(body, bodyText) : readFlat(body)
  return { ...request, message: { ...request.message, key: request.message.key ?? key } }
}

function readFlat(body: unknown): SendRequest {
  const { context_token: contextToken, content, msg_type: msgType = 'text' } = checkText(body)
  if (msgType !== 'text') {
    throw new AppError('bad_request', 'msg_type must be "text"; media goes in the msg shape of the bot protocol.', {
      details: { field: 'msg_type' },
    })
  }
  if (content.trim() === '') throw new AppError('bad_request', 'content is empty.', { details: { field: 'content' } })
  return { contextToken, userId: undefined, message: composeText(content, contextToken) }
}

function readReal(body: unknown, bodyText: string): SendRequest {
  const { msg } = checkMessage(body)
  const contextToken = msg.context_token || undefined
  const userId = msg.to_user_id || undefined
  if (contextToken === undefined && userId === undefined) {
    throw new AppError('bad_request', 'msg.context_token is missing; take it from the message you answer.', {
      details: { field: 'msg.context_token' },
    })
  }
  // The service answers a broken text as it answers too many: the hub would hold back everybody's sends.
  const textless = msg.item_list.findIndex(({ type, text_item }) => type === TEXT && text_item?.text === undefined)
  if (textless !== -1) {
    const field = `msg.item_list.${textless}.text_item.text`
    throw new AppError('bad_request', `${field} is missing.`, { details: { field } })
  }
  if (msg.item_list.every(({ text_item }) => text_item?.text?.trim() === '')) {
    throw new AppError('bad_request', 'msg.item_list holds no text and no media.', {
      details: { field: 'msg.item_list' },
    })
  }
  return { contextToken, userId, message: composeMessage(rawMember(bodyText, 'msg') ?? '{}') }
}
