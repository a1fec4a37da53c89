import { Type } from 'typebox'
import { AppError } from '../../kit/errors.ts'
import type { HttpServer, Request } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import { inboxKey } from '../inbound.ts'
import { checkSend, knownUser, receive, SendBody } from '../outbound.ts'
import type { ParkedCall } from '../parking.ts'
import { qrKey } from '../qr-login.ts'
import type { World } from '../world.ts'
import { refusal } from './answers.ts'
import { authenticate, type BotCall, baseUrl, botRoute, openRoute } from './bot-calls.ts'
import { updatesText } from './updates-text.ts'

const checkPoll = checker(Type.Object({ get_updates_buf: Type.Optional(Type.String()) }))
const checkSendBody = checker(SendBody)
const checkConfig = checker(Type.Object({ ilink_user_id: Type.Optional(Type.String()) }))
const checkTyping = checker(
  Type.Object({
    ilink_user_id: Type.String({ minLength: 1 }),
    typing_ticket: Type.String({ minLength: 1 }),
    status: Type.Integer({ minimum: 1, maximum: 2 }),
  }),
)
const checkUpload = checker(
  Type.Object({
    filekey: Type.String({ minLength: 1 }),
    filesize: Type.Optional(Type.Integer({ minimum: 1 })),
    thumb_filesize: Type.Optional(Type.Integer({ minimum: 1 })),
  }),
)
const checkQrQuery = checker(
  Type.Object({ qrcode: Type.String({ minLength: 1 }), verify_code: Type.Optional(Type.String()) }),
  'query',
)

const OK = '{"ret":0,"errmsg":""}'
const QR_HOLD_MS = 5_000

/** The bot protocol, as the messaging service speaks it. */
export function addBotRoutes(app: HttpServer, world: World): void {
  app.post(
    '/ilink/bot/getupdates',
    botRoute(world, 'getupdates', (call) => getUpdates(world, call)),
  )
  app.post(
    '/ilink/bot/sendmessage',
    botRoute(world, 'sendmessage', (call) => sendMessage(world, call)),
  )
  app.post(
    '/ilink/bot/getconfig',
    botRoute(world, 'getconfig', (call) => getConfig(world, call)),
  )
  app.post(
    '/ilink/bot/sendtyping',
    botRoute(world, 'sendtyping', (call) => sendTyping(world, call)),
  )
  app.post(
    '/ilink/bot/getuploadurl',
    botRoute(world, 'getuploadurl', (call) => getUploadUrl(world, call)),
  )
  app.post(
    '/ilink/bot/msg/notifystart',
    botRoute(world, 'notifystart', (call) => notify(call, true)),
  )
  app.post(
    '/ilink/bot/msg/notifystop',
    botRoute(world, 'notifystop', (call) => notify(call, false)),
  )
  const getQrCode = openRoute(world, 'get_bot_qrcode', (request) => issueQrCode(world, request))
  app.get('/ilink/bot/get_bot_qrcode', getQrCode)
  app.post('/ilink/bot/get_bot_qrcode', getQrCode)
  const getQrStatus = openRoute(world, 'get_qrcode_status', (request, reply) => qrStatus(world, request, reply.raw))
  app.get('/ilink/bot/get_qrcode_status', getQrStatus)
}

async function getUpdates(world: World, { bot, token, body, response }: BotCall): Promise<string> {
  bot.polls += 1
  bot.inbox.acknowledge(checkPoll(body).get_updates_buf ?? '')
  // The newest poll wins: the older one is answered with nothing, so no message is split between two readers.
  const isRival = (call: ParkedCall) => call.endpoint === 'getupdates' && call.botId === bot.id
  bot.displaced += world.parking.count(isRival)
  world.parking.end(isRival)
  const batch = await world.parking.park(
    { endpoint: 'getupdates', botId: bot.id, response },
    { key: inboxKey(bot), read: () => bot.inbox.read(), waitMs: world.holdMs },
  )
  if (response.destroyed) return ''
  // The session may have ended during the wait.
  authenticate(world, 'getupdates', token)
  return updatesText(world, bot, batch)
}

function sendMessage(world: World, { bot, body, bodyText }: BotCall): string {
  const spot = { bot: bot.id }
  if (world.faults.take('throttle', spot)) return refusal(-2, 'rate limited')
  const refused = world.faults.take('refuse_send', spot)
  if (refused) return refusal(refused.ret ?? -1, refused.errmsg ?? 'refused')
  const send = checkSendBody(body)
  checkSend(world, bot, send.msg)
  // Risk control: the service says yes, gives no id, and nobody ever sees the message.
  if (world.faults.take('unconfirmed', spot)) return '{"ret":0}'
  return `{"ret":0,"message_id":${receive(world, bot, send, bodyText)}}`
}

function getConfig(world: World, { bot, body }: BotCall): string {
  const userId = checkConfig(body).ilink_user_id
  if (!userId) throw new AppError('bad_request', 'ilink_user_id required')
  knownUser(world, bot, userId)
  return JSON.stringify({ ret: 0, typing_ticket: world.tickets.issue(bot.id, userId) })
}

function sendTyping(world: World, { bot, body }: BotCall): string {
  const { ilink_user_id: userId, typing_ticket: ticket, status } = checkTyping(body)
  const conversation = knownUser(world, bot, userId)
  if (!world.tickets.isValid(ticket, bot.id, userId))
    throw new AppError('bad_request', 'typing_ticket invalid or expired')
  world.conversations.setTyping(conversation, status === 1)
  return OK
}

function getUploadUrl(world: World, { body, baseUrl }: BotCall): string {
  const { filekey, filesize, thumb_filesize } = checkUpload(body)
  const uploadParam = world.media.announce({ filekey, fileSize: filesize })
  const query = new URLSearchParams({ encrypted_query_param: uploadParam, filekey })
  return JSON.stringify({
    ret: 0,
    upload_param: uploadParam,
    ...(thumb_filesize && { thumb_upload_param: world.media.announce({ filekey, fileSize: thumb_filesize }) }),
    upload_full_url: `${baseUrl}/c2c/upload?${query}`,
  })
}

function notify({ bot }: BotCall, started: boolean): string {
  bot.started = started
  return OK
}

function issueQrCode(world: World, request: Request): string {
  const { qrcode } = world.qr.issue()
  return JSON.stringify({ ret: 0, qrcode, qrcode_img_content: `${baseUrl(request)}/sim/qr?qrcode=${qrcode}` })
}

async function qrStatus(world: World, request: Request, response: BotCall['response']): Promise<string> {
  const { qrcode, verify_code } = checkQrQuery(request.query)
  if (verify_code) world.qr.verify(qrcode, verify_code)
  const [news] = await world.parking.park(
    { endpoint: 'get_qrcode_status', response },
    { key: qrKey(qrcode), read: () => world.qr.news(qrcode), waitMs: Math.min(QR_HOLD_MS, world.holdMs) },
  )
  const progress = news ?? world.qr.current(qrcode)
  const isIn = progress.status === 'confirmed'
  return JSON.stringify({ ret: 0, ...progress, ...(isIn && { baseurl: baseUrl(request) }) })
}
