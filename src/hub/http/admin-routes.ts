import { AppError } from '../../kit/errors.ts'
import type { HttpServer } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import { DefaultClientBody, DryRunBody, PatchClientBody, RegisterBody, RotateBody } from '../../wire/hub.ts'
import type { Hub } from '../hub.ts'
import type { Client } from '../model.ts'
import { clientNamed } from '../registry.ts'
import type { AdminAuth } from './admin-auth.ts'
import { letterRoutes } from './letter-routes.ts'
import { panelRoutes } from './panel-routes.ts'

const checkRegister = checker(RegisterBody)
const checkPatch = checker(PatchClientBody)
const checkRotate = checker(RotateBody)
const checkDefault = checker(DefaultClientBody)
const checkDryRun = checker(DryRunBody)

const MAX_NAME = 64
const CONTROL = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

/** Routes with a client's name in the path. */
interface Named {
  Params: { name: string }
}

/** Administration as JSON. Everything under here has passed the admin's door. */
export function adminRoutes(app: HttpServer, hub: Hub, auth: AdminAuth): void {
  const { registry } = hub

  app.register(async (scope) => {
    scope.addHook('onRequest', async (request) => auth.check(request))

    scope.post('/hub/register', async (request, reply) => {
      const { name, label, fallback = false } = checkRegister(bodyOf(request))
      const wanted = validName(name)
      const shown = label === undefined || label.trim() === '' ? wanted : validText('label', label.trim())
      const { client, token } = await hub.addClient(wanted, { label: shown, fallback })
      return reply.code(201).send({ name: client.name, label: client.label, token, created_at: iso(client.createdAt) })
    })

    scope.get('/hub/clients', async () => {
      const all = registry.all().toSorted((a, b) => a.name.localeCompare(b.name, 'en'))
      return { clients: all.map(summary), total: all.length, online: registry.onlineCount() }
    })

    scope.get<Named>('/hub/clients/:name', async (request) => details(clientNamed(registry, request.params.name)))

    scope.patch<Named>('/hub/clients/:name', async (request) => {
      const client = clientNamed(registry, request.params.name)
      const { label, default: isDefault, fallback, passthrough } = checkPatch(bodyOf(request))
      const updated = await registry.update(client.id, {
        ...(label === undefined ? {} : { label: validText('label', label.trim()) || client.name }),
        ...(isDefault === undefined ? {} : { isDefault }),
        ...(fallback === undefined ? {} : { fallback }),
        ...(passthrough === undefined ? {} : { passthrough: passthrough.map(commandName) }),
      })
      return details(updated)
    })

    scope.delete<Named>('/hub/clients/:name', async (request, reply) => {
      await hub.removeClient(clientNamed(registry, request.params.name))
      return reply.code(204).send()
    })

    scope.post<Named>('/hub/clients/:name/rotate', async (request) => {
      const client = clientNamed(registry, request.params.name)
      const { overlap_seconds: overlapSeconds = 0 } = checkRotate(bodyOf(request))
      const token = await registry.rotate(client.id, overlapSeconds * 1000)
      return { name: client.name, token, overlap_seconds: overlapSeconds }
    })

    scope.get('/hub/default', async () => ({ name: registry.all().find(({ isDefault }) => isDefault)?.name ?? null }))

    scope.put('/hub/default', async (request) => {
      const { name } = checkDefault(bodyOf(request))
      const present = registry.all().find(({ isDefault }) => isDefault)
      if (name !== null) await registry.update(clientNamed(registry, name).id, { isDefault: true })
      else if (present) await registry.update(present.id, { isDefault: false })
      return { name: name === null ? null : clientNamed(registry, name).name }
    })

    scope.post('/hub/route/dry-run', async (request) => {
      const { user, text } = checkDryRun(bodyOf(request))
      const { state, reason, targets, choose, notices, text: passed } = await hub.intake.dryRun(user, text)
      return {
        state,
        reason,
        clients: targets.map(nameOf),
        chooses: choose === undefined || choose === null ? null : nameOf(choose),
        text: passed ?? text,
        replies: notices.map((notice) => notice.text),
      }
    })

    scope.get('/hub/upstream', async () => upstreamDetail(hub))
    letterRoutes(scope, hub)
    panelRoutes(scope, hub)
  })

  const nameOf = (id: number) => registry.get(id)?.name ?? null

  function summary(client: Client) {
    const { lastSeq, settledSeq } = hub.delivery.position(client.id)
    return {
      name: client.name,
      label: client.label,
      status: registry.isOnline(client) ? 'online' : 'offline',
      last_seen: iso(client.lastSeen),
      queue_size: lastSeq - settledSeq,
    }
  }

  function details(client: Client) {
    const { isDefault, fallback, passthrough, createdAt } = client
    return { ...summary(client), created_at: iso(createdAt), default: isDefault, fallback, passthrough }
  }
}

/** The state of the link with what a person needs to know. */
export function upstreamDetail({ link }: Hub) {
  const { state, reason, since, nextRetryAt, action, lastPollAt } = link.view()
  return {
    state,
    reason,
    since: iso(since),
    next_retry_at: nextRetryAt === null ? null : iso(nextRetryAt),
    action,
    last_poll_at: lastPollAt === null ? null : iso(lastPollAt),
  }
}

/** An empty body is an empty object: on most calls every field is optional. */
export function bodyOf(request: { body: unknown }): unknown {
  return request.body === undefined ? {} : request.body
}

export function iso(atMs: number): string {
  return new Date(atMs).toISOString()
}

function validName(name: string): string {
  const trimmed = validText('name', name.trim().normalize('NFC'))
  // Counted as the schemas count: an emoji is one character.
  if (trimmed === '' || [...trimmed].length > MAX_NAME) {
    throw new AppError('bad_request', `name must have 1 to ${MAX_NAME} characters.`, { details: { field: 'name' } })
  }
  if (!/[\p{L}\p{N}\p{P}\p{S}]/u.test(trimmed)) {
    throw new AppError('bad_request', 'name must hold something that can be seen.', { details: { field: 'name' } })
  }
  if (trimmed === '.' || trimmed === '..') {
    throw new AppError('bad_request', 'name must not be "." or "..": it could not stand in a path.', {
      details: { field: 'name' },
    })
  }
  return trimmed
}

function validText(field: string, text: string): string {
  if (CONTROL.test(text))
    throw new AppError('bad_request', `${field} must not hold control characters.`, { details: { field } })
  return text
}

/** A command as routing knows it: without its prefix, in lower case. */
function commandName(command: string, index: number): string {
  const name = command.replace(/^\W+/, '').toLowerCase()
  if (/^[a-z]+$/.test(name)) return name
  const field = `passthrough.${index}`
  throw new AppError('bad_request', `${field} must name a command, such as list.`, { details: { field } })
}
