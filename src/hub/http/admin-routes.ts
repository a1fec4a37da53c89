import { AppError } from '../../kit/errors.ts'
import type { HttpServer } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import { DefaultClientBody, DryRunBody, PatchClientBody, RegisterBody, RotateBody } from '../../wire/hub.ts'
import type { Hub } from '../hub.ts'
import type { Client } from '../model.ts'
import { clientNamed } from '../registry.ts'
import type { AdminAuth } from './admin-auth.ts'
import { bodyOf, iso } from './bodies.ts'
import { knownAccount, validName, validText } from './client-fields.ts'
import { letterRoutes } from './letter-routes.ts'
import { pairingAdminRoutes } from './pairing-routes.ts'
import { panelRoutes } from './panel-routes.ts'
import { sendRoutes } from './send-routes.ts'
import { upstreamRoutes } from './upstream-routes.ts'

const checkRegister = checker(RegisterBody)
const checkPatch = checker(PatchClientBody)
const checkRotate = checker(RotateBody)
const checkDefault = checker(DefaultClientBody)
const checkDryRun = checker(DryRunBody)

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
      const { name, label, fallback = false, account = null } = checkRegister(bodyOf(request))
      const wanted = validName(name)
      const shown = label === undefined || label.trim() === '' ? wanted : validText('label', label.trim())
      const { client, token } = await hub.addClient(wanted, {
        label: shown,
        fallback,
        account: knownAccount(hub, account),
      })
      return reply.code(201).send({ name: client.name, label: client.label, token, created_at: iso(client.createdAt) })
    })

    scope.get('/hub/clients', async () => {
      const all = registry.all().toSorted((a, b) => a.name.localeCompare(b.name, 'en'))
      return { clients: all.map(summary), total: all.length, online: registry.onlineCount() }
    })

    scope.get<Named>('/hub/clients/:name', async (request) => details(clientNamed(registry, request.params.name)))

    scope.patch<Named>('/hub/clients/:name', async (request) => {
      const client = clientNamed(registry, request.params.name)
      const { label, default: isDefault, fallback, passthrough, account } = checkPatch(bodyOf(request))
      const updated = await registry.update(client.id, {
        ...(label === undefined ? {} : { label: validText('label', label.trim()) || client.name }),
        ...(isDefault === undefined ? {} : { isDefault }),
        ...(fallback === undefined ? {} : { fallback }),
        ...(passthrough === undefined ? {} : { passthrough: passthrough.map(commandName) }),
        ...(account === undefined ? {} : { account: knownAccount(hub, account) }),
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
      const { user, text, account } = checkDryRun(bodyOf(request))
      const { state, reason, targets, choose, notices, text: passed } = await hub.dryRun(account, user, text)
      return {
        state,
        reason,
        clients: targets.map(nameOf),
        chooses: choose === undefined || choose === null ? null : nameOf(choose),
        text: passed ?? text,
        replies: notices.map((notice) => notice.text),
      }
    })

    upstreamRoutes(scope, hub)
    pairingAdminRoutes(scope, hub)
    letterRoutes(scope, hub)
    sendRoutes(scope, hub)
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
    const { isDefault, fallback, passthrough, createdAt, account } = client
    return { ...summary(client), created_at: iso(createdAt), default: isDefault, fallback, passthrough, account }
  }
}

/** A command as routing knows it: without its prefix, in lower case. */
function commandName(command: string, index: number): string {
  const name = command.replace(/^\W+/, '').toLowerCase()
  if (/^[a-z]+$/.test(name)) return name
  const field = `passthrough.${index}`
  throw new AppError('bad_request', `${field} must name a command, such as list.`, { details: { field } })
}
