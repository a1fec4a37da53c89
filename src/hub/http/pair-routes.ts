import { randomBytes } from 'node:crypto'
import { AppError } from '../../kit/errors.ts'
import type { HttpServer, Reply, Request } from '../../kit/http.ts'
import { sendPage } from '../../kit/pages.ts'
import type { Hub } from '../hub.ts'
import type { PairingView } from '../pairings.ts'
import type { AdminAuth } from './admin-auth.ts'
import { pairPage } from './pair-page.ts'
import { approve } from './pairing-routes.ts'

interface WithId {
  Params: { id: string }
}

/** The page behind a pairing's QR code. `askToSignIn` answers who is no admin (yet). */
export function pairRoutes(
  app: HttpServer,
  hub: Hub,
  auth: AdminAuth,
  askToSignIn: (reply: Reply, error: unknown, tried: boolean) => Reply,
): void {
  app.get<WithId>('/hub/pair/:id', async (request, reply) => {
    try {
      auth.check(request)
    } catch (error) {
      return askToSignIn(reply, error, false)
    }
    return show(reply, hub.pairings.open(request.params.id), '', '')
  })

  app.post<WithId>(
    '/hub/pair/:id',
    { config: { bodyAs: 'text' }, bodyLimit: 16 * 1024 },
    async (request: Request<WithId>, reply) => {
      try {
        auth.check(request)
      } catch (error) {
        return askToSignIn(reply, error, false)
      }
      return act(request, reply)
    },
  )

  async function act(request: Request<WithId>, reply: Reply): Promise<Reply> {
    const { id } = request.params
    const fields = new URLSearchParams(request.bodyText)
    const name = fields.get('name') ?? ''
    try {
      if (fields.get('do') === 'reject') hub.pairings.reject(id)
      else await approve(hub, id, { name, label: fields.get('label') ?? '', replace: fields.get('replace') === 'yes' })
    } catch (error) {
      if (!(error instanceof AppError) || error.code === 'not_found') throw error
      const hint = error.code === 'name_taken' ? ' If it is the same client, tick the box and it gets a new token.' : ''
      reply.code(error.code === 'bad_request' ? 400 : 409)
      return show(reply, hub.pairings.open(id), error.message + hint, name)
    }
    // Reloading the page after this must not do it again.
    return reply.redirect(`/hub/pair/${id}`, 303)
  }

  function show(reply: Reply, pairing: PairingView, problem: string, name: string): Reply {
    const nonce = randomBytes(16).toString('base64')
    return sendPage(reply, pairPage({ pairing, nonce, problem, name }), nonce)
  }
}
