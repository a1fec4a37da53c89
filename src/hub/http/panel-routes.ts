import { createHash } from 'node:crypto'
import type { HttpServer, Reply, Request } from '../../kit/http.ts'
import type { Hub } from '../hub.ts'
import type { Client, MessageRecord } from '../model.ts'
import { iso, linkDetail } from './bodies.ts'
import { contentOf } from './letter-routes.ts'
import { remainingBody } from './send-routes.ts'

const MOST_CLIENTS = 200
/** Conversations are those of the users who wrote among so many newest messages. */
const NEWEST_MESSAGES = 300
const MOST_CONVERSATIONS = 50

/** What the panel looks at again and again: short reads, and 304 while nothing has changed. */
export function panelRoutes(app: HttpServer, hub: Hub): void {
  const { registry, store, traffic } = hub

  app.get('/hub/overview', async (request, reply) => {
    const all = registry.all().toSorted((a, b) => a.name.localeCompare(b.name, 'en'))
    return sendFresh(request, reply, {
      link: linkDetail(hub.link.view()),
      clients: all.slice(0, MOST_CLIENTS).map(clientView),
      total: all.length,
      online: registry.onlineCount(),
      dead_letters: await store.deadLetters.count(),
    })
  })

  app.get('/hub/conversations', async (request, reply) => {
    const newest = new Map<string, MessageRecord>()
    for (const message of await store.messages.list({ limit: NEWEST_MESSAGES })) {
      const key = `${message.account}\n${message.userId.toLowerCase()}`
      if (message.userId !== '' && !newest.has(key)) newest.set(key, message)
    }
    const conversations = await Promise.all([...newest.values()].slice(0, MOST_CONVERSATIONS).map(conversationView))
    return sendFresh(request, reply, { conversations })
  })

  async function conversationView({ account, userId, receivedAt, spec, deliveries, reason }: MessageRecord) {
    const conversation = await store.conversations.get(account, userId)
    const chosen = conversation?.chosenClientId ?? null
    return {
      user: userId,
      last_at: iso(receivedAt),
      last_text: contentOf(spec).content,
      client: deliveries[0]?.clientName ?? null,
      chosen: chosen === null ? null : (registry.get(chosen)?.name ?? null),
      reason,
      ...(conversation && remainingBody(conversation, hub)),
    }
  }

  function clientView(client: Client) {
    const { lastSeq, settledSeq } = hub.delivery.position(client.id)
    return {
      name: client.name,
      label: client.label,
      status: registry.isOnline(client) ? 'online' : 'offline',
      last_seen: iso(client.lastSeen),
      created_at: iso(client.createdAt),
      queue_size: lastSeq - settledSeq,
      default: client.isDefault,
      fallback: client.fallback,
      ...traffic.read(client.id),
    }
  }
}

/** The answer, or 304 when the caller has it already. */
function sendFresh(request: Request, reply: Reply, body: object): Reply {
  const text = JSON.stringify(body)
  const tag = `"${createHash('sha1').update(text).digest('base64url')}"`
  reply.headers({ etag: tag, 'cache-control': 'private, no-cache' })
  if (request.headers['if-none-match'] === tag) return reply.code(304).send()
  return reply.type('application/json; charset=utf-8').send(text)
}
