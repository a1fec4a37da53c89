import { AppError } from '../../kit/errors.ts'
import type { HttpServer, Request } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import { BulkBody, ListQuery, ReplayBody } from '../../wire/hub.ts'
import type { Hub } from '../hub.ts'
import { newContextToken } from '../intake.ts'
import type { DeadLetter, MessageRecord } from '../model.ts'
import { clientNamed } from '../registry.ts'
import { bodyOf, iso } from './bodies.ts'

const checkQuery = checker(ListQuery, 'query')
const checkReplay = checker(ReplayBody)
const checkBulk = checker(BulkBody)

const DEFAULT_PAGE = 100
const MAX_PAGE = 1_000
const BULK_PAGE = 1_000

/** Routes with an id in the path. */
interface WithId {
  Params: { id: string }
}

/** What came, where it went and why; and what could not be delivered. */
export function letterRoutes(app: HttpServer, hub: Hub): void {
  const { store, registry, delivery } = hub

  app.get('/hub/messages', async (request) => {
    const { client, account, user, state, before, limit } = checkQuery(request.query)
    const found = await store.messages.list({
      ...(client === undefined ? {} : { clientId: clientNamed(registry, client).id }),
      ...(account === undefined ? {} : { account }),
      ...(user === undefined ? {} : { userId: user }),
      ...(state === undefined ? {} : { state }),
      ...page(before, limit),
    })
    return { messages: found.map(messageBody) }
  })

  app.post<WithId>('/hub/messages/:id/replay', async (request) => {
    const { client } = checkReplay(bodyOf(request))
    const messageId = idOf(request)
    if (client === undefined)
      throw new AppError('bad_request', 'client is missing; name the client that is to get it again.', {
        details: { field: 'client' },
      })
    const position = await store.messages.replay(messageId, clientNamed(registry, client).id, hub.now())
    if (position === null)
      throw new AppError(
        'not_found',
        `Message ${messageId} was not delivered to ${client}, or its text is no longer kept.`,
      )
    delivery.advance([position])
    return { replayed: messageId, client }
  })

  app.get('/hub/dead-letters', async (request) => {
    const { client, reason, before, limit } = checkQuery(request.query)
    const found = await store.deadLetters.list({
      ...(client === undefined ? {} : { clientId: clientNamed(registry, client).id }),
      ...(reason === undefined ? {} : { reason }),
      ...page(before, limit),
    })
    return { dead_letters: found.map(letterBody), total: await store.deadLetters.count() }
  })

  app.post<WithId>('/hub/dead-letters/:id/replay', async (request) => {
    const { client } = checkReplay(bodyOf(request))
    const id = idOf(request)
    if (!(await replay(id, client === undefined ? null : clientNamed(registry, client).id))) throw noLetter(id)
    return { replayed: [id] }
  })

  app.delete<WithId>('/hub/dead-letters/:id', async (request, reply) => {
    const id = idOf(request)
    if (!(await store.deadLetters.discard(id, hub.now()))) throw noLetter(id)
    return reply.code(204).send()
  })

  /**
   * Many at once: the ids given, or all of a client's; the oldest first, so that a conversation keeps its order. What is
   * gone already is passed over, so it may be repeated.
   */
  app.post('/hub/dead-letters/replay', async (request) => {
    const done: number[] = []
    const failed: { id: number; code: string; message: string }[] = []
    const { ids, client } = checkBulk(bodyOf(request))
    // With ids the client is where they are to go; alone it says whose letters are meant.
    const target = ids === undefined || client === undefined ? null : clientNamed(registry, client).id
    for (const id of await chosen(request)) {
      try {
        if (await replay(id, target)) done.push(id)
      } catch (error) {
        // One that has nowhere to go must not hold up the rest.
        if (!(error instanceof AppError && ['client_gone', 'not_found', 'queue_full'].includes(error.code))) throw error
        failed.push({ id, code: error.code, message: error.message })
      }
    }
    return { replayed: done, failed }
  })

  app.post('/hub/dead-letters/discard', async (request) => {
    const done: number[] = []
    for (const id of await chosen(request)) if (await store.deadLetters.discard(id, hub.now())) done.push(id)
    return { discarded: done }
  })

  async function chosen(request: Request): Promise<number[]> {
    const { ids, client } = checkBulk(bodyOf(request))
    if (ids !== undefined) return ids.toSorted((a, b) => a - b)
    if (client === undefined)
      throw new AppError('bad_request', 'Name the letters: ids, or client for all of one client.', {
        details: { field: 'ids' },
      })
    const letters = await store.deadLetters.list({ clientId: clientNamed(registry, client).id, limit: BULK_PAGE })
    return letters.map(({ id }) => id).reverse()
  }

  async function replay(id: number, clientId: number | null): Promise<boolean> {
    const now = hub.now()
    const position = await store.deadLetters.replay(id, clientId, now, newContextToken(now))
    if (position !== null) delivery.advance([position])
    return position !== null
  }
}

/** One page of a list, as the query asks for it. */
export function page(before: string | undefined, limit: string | undefined): { before?: number; limit: number } {
  const wanted = limit === undefined ? DEFAULT_PAGE : Number(/^\d{1,4}$/.test(limit) ? limit : Number.NaN)
  if (!(wanted >= 1 && wanted <= MAX_PAGE)) {
    throw new AppError('bad_request', `limit must be a whole number from 1 to ${MAX_PAGE}.`, {
      details: { field: 'limit' },
    })
  }
  if (before !== undefined && !/^[1-9]\d{0,14}$/.test(before)) {
    throw new AppError('bad_request', 'before must be an id: a positive whole number.', {
      details: { field: 'before' },
    })
  }
  return { ...(before === undefined ? {} : { before: Number(before) }), limit: wanted }
}

function idOf({ params: { id } }: { params: { id: string } }): number {
  if (!/^[1-9]\d{0,14}$/.test(id))
    throw new AppError('bad_request', 'id must be a positive whole number.', { details: { field: 'id' } })
  return Number(id)
}

function noLetter(id: number): AppError {
  return new AppError('not_found', `There is no dead letter ${id}; it was replayed or discarded, or never was.`)
}

function messageBody(message: MessageRecord) {
  const { id, account, upstreamId, userId, receivedAt, state, reason, duplicateOf, spec, deliveries } = message
  return {
    id,
    account,
    upstream_id: upstreamId,
    from_user: userId,
    received_at: iso(receivedAt),
    state,
    reason,
    duplicate_of: duplicateOf,
    ...contentOf(spec),
    deliveries: deliveries.map(({ clientName, state, failures }) => ({ client: clientName, state, failures })),
  }
}

function letterBody({ id, clientName, messageId, reason, userId, spec, createdAt }: DeadLetter) {
  return {
    id,
    client: clientName,
    message_id: messageId,
    reason,
    from_user: userId,
    ...contentOf(spec),
    created_at: iso(createdAt),
  }
}

/** What a stored message says, in the spec's words; null where its text is gone. */
export function contentOf(spec: string): { content: string | null; msg_type: string | null } {
  const fields: unknown = spec === '' ? {} : JSON.parse(spec)
  const of = (key: string) => {
    const value = typeof fields === 'object' && fields !== null ? new Map(Object.entries(fields)).get(key) : null
    return typeof value === 'string' ? value : null
  }
  return { content: of('content'), msg_type: of('msg_type') }
}
