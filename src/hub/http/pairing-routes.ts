import { createHash } from 'node:crypto'
import { Type } from 'typebox'
import type { HttpServer, Reply, Request } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import { ApproveBody, type PairingAnswer } from '../../wire/hub.ts'
import { DEFAULT_ACCOUNT } from '../accounts.ts'
import type { Hub } from '../hub.ts'
import type { Client } from '../model.ts'
import type { PairingView } from '../pairings.ts'
import { baseUrlOf } from './base-url.ts'
import { bodyOf, iso } from './bodies.ts'
import { knownAccount, validName, validText } from './client-fields.ts'

const PREFIXES = ['/relay/bot', '/ilink/bot']
const QR_BODY_BYTES = 64 * 1024
const checkStatusQuery = checker(Type.Object({ qrcode: Type.String({ minLength: 1, maxLength: 200 }) }), 'query')
const checkApprove = checker(ApproveBody)

/** For clients that must hear of some user and whose account knows of none. */
const NOBODY = 'unknown@im.wechat'

/** Where clients ask to be paired: as at the service itself, without a token. What they send along is not looked at. */
export function pairingRoutes(app: HttpServer, hub: Hub, { publicUrl }: { publicUrl: string | null }): void {
  const begin = async (request: Request) => {
    const { id, qrcode } = hub.pairings.begin(request.raw.socket.remoteAddress ?? 'unknown')
    const page = `${baseUrlOf(request.raw, { publicUrl })}/hub/pair/${id}`
    return { ret: 0, errcode: 0, errmsg: '', qrcode, qrcode_img_content: page }
  }
  const status = async (request: Request, reply: Reply) => {
    const { qrcode } = checkStatusQuery(request.query)
    const gone = new AbortController()
    reply.raw.once('close', () => gone.abort())
    const news = await hub.pairings.news(qrcode, gone.signal)
    const base = { ret: 0, errcode: 0, errmsg: '' }
    if (news.status !== 'confirmed') return { ...base, status: news.status }
    const { client, token, userId } = news
    return {
      ...base,
      status: news.status,
      bot_token: token,
      ilink_bot_id: botIdOf(hub, client),
      ilink_user_id: userId ?? NOBODY,
      baseurl: baseUrlOf(request.raw, { publicUrl }),
    }
  }
  for (const prefix of PREFIXES) {
    app.get(`${prefix}/get_bot_qrcode`, begin)
    // As text: the body may hold tokens of other services, and nobody here wants to see them.
    app.post(`${prefix}/get_bot_qrcode`, { bodyLimit: QR_BODY_BYTES, config: { bodyAs: 'text' } }, begin)
    app.get(`${prefix}/get_qrcode_status`, status)
  }
}

/** The pairings for admins. Everything here has passed the admin's door. */
export function pairingAdminRoutes(app: HttpServer, hub: Hub): void {
  app.get('/hub/pairings', async () => ({ pairings: hub.pairings.list().map(pairingAnswer) }))

  app.post<WithId>('/hub/pairings/:id/approve', async (request) => approve(hub, request.params.id, bodyOf(request)))

  app.post<WithId>('/hub/pairings/:id/reject', async (request) => pairingAnswer(hub.pairings.reject(request.params.id)))
}

interface WithId {
  Params: { id: string }
}

/** Lets a client in: as a new one, or with `replace` as one that is there and gets a new token. */
export async function approve(hub: Hub, id: string, body: unknown): Promise<PairingAnswer> {
  const { name, label, account, user, replace = false } = checkApprove(body)
  const wanted = validName(name)
  const shown = label === undefined || label.trim() === '' ? wanted : validText('label', label.trim())
  const bound = knownAccount(hub, account ?? null)
  const present = hub.registry.byName(wanted)
  const pairing = await hub.pairings.approve(id, async () => {
    if (present && replace) {
      const token = await hub.registry.rotate(present.id, 0)
      return { client: present, token, userId: user ?? ownerOf(hub, present.account) }
    }
    const { client, token } = await hub.addClient(wanted, { label: shown, fallback: false, account: bound })
    return { client, token, userId: user ?? ownerOf(hub, bound) }
  })
  return pairingAnswer(pairing)
}

function pairingAnswer({ id, status, from, createdAt, expiresAt, name }: PairingView): PairingAnswer {
  return { id, status, from, created_at: iso(createdAt), expires_at: iso(expiresAt), name, page: `/hub/pair/${id}` }
}

/** Whose bot it is: some clients hear that person only. */
function ownerOf(hub: Hub, account: string | null): string | null {
  const preferred = hub.accounts.get(account ?? DEFAULT_ACCOUNT)?.login?.userId
  if (preferred || account !== null) return preferred ?? null
  return hub.accounts.all().find(({ login }) => login?.userId)?.login?.userId ?? null
}

/** Unique for a client of this hub, in the form of the service's own. */
function botIdOf({ store }: Hub, { id }: Client): string {
  return `${createHash('sha256').update(`${store.hubId}:${id}`).digest('hex').slice(0, 12)}@im.bot`
}
