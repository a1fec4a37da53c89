import type { HttpServer, Reply, Request } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import { BotBody, ConversationQuery, MediaQuery, QrQuery, ScanBody } from '../../wire/sim.ts'
import type { SimControl } from '../control.ts'
import { readConversation } from '../conversation-text.ts'
import type { World } from '../world.ts'
import { readFault, readSayings } from './control-bodies.ts'
import { checkSameSite } from './same-site.ts'

const checkConversation = checker(ConversationQuery, 'query')
const checkMedia = checker(MediaQuery, 'query')
const checkScan = checker(ScanBody)
const checkQr = checker(QrQuery, 'query')
const checkBot = checker(BotBody)

/** Files come in base64. */
const SAY_BODY_BYTES = 48 * 1024 * 1024

/** The control API and `/health`. */
export function addControlRoutes(app: HttpServer, world: World, control: SimControl): void {
  app.get('/health', async () => ({ status: 'ok' }))
  app.register(async (scope) => {
    scope.addHook('onRequest', async (request) => checkSameSite(request))
    scope.post('/sim/say', { bodyLimit: SAY_BODY_BYTES }, async (request) => say(control, request))
    scope.get('/sim/conversation', async (request, reply) => conversation(world, request, reply))
    scope.get('/sim/media', async (request, reply) =>
      reply.type('application/octet-stream').send(control.media(checkMedia(request.query))),
    )
    scope.get('/sim/users', async () => ({ users: control.users() }))
    scope.get('/sim/state', async () => control.state())
    scope.post('/sim/fault', async (request) => control.faults.add(readFault(request.body)))
    scope.get('/sim/fault', async () => ({ faults: control.faults.list() }))
    scope.delete('/sim/fault', async () => ({ cleared: control.faults.clear() }))
    scope.post('/sim/bots', async (request) => control.accounts.add(checkBot(request.body)))
    scope.post('/sim/qr/scan', async (request) => control.accounts.scan(checkScan(request.body)))
    scope.get('/sim/qr', async ({ query }) => ({ codes: codes(control, checkQr(query).qrcode) }))
  })
}

function say(control: SimControl, { body, bodyText }: Request): unknown {
  const { sayings, isMany } = readSayings(body, bodyText)
  const said = control.sayAll(sayings)
  return isMany ? { messages: said } : said[0]
}

async function conversation(world: World, request: Request, reply: Reply): Promise<unknown> {
  const { user, bot, after, wait_ms, typing } = checkConversation(request.query)
  const wanted = { user, bot, after: Number(after ?? 0), waitMs: Number(wait_ms ?? 0) }
  const known = typing === undefined ? {} : { typing: typing === 'true' }
  const text = await readConversation(world, { ...wanted, ...known }, { response: reply.raw })
  return reply.type('application/json; charset=utf-8').send(text)
}

function codes(control: SimControl, wanted: string | undefined) {
  return control.accounts.qrCodes().filter(({ qrcode }) => wanted === undefined || qrcode === wanted)
}
