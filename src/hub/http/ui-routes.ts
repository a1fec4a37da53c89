import { randomBytes } from 'node:crypto'
import { AppError } from '../../kit/errors.ts'
import type { HttpServer, Reply, Request } from '../../kit/http.ts'
import { openPages, type Pages, sendPage } from '../../kit/pages.ts'
import type { Hub } from '../hub.ts'
import type { AdminAuth } from './admin-auth.ts'
import { escapeHtml } from './pair-page.ts'
import { pairRoutes } from './pair-routes.ts'

/** The browser panel and its door. */
export function uiRoutes(app: HttpServer, hub: Hub, auth: AdminAuth, pages: Pages = openPages()): void {
  pairRoutes(app, hub, auth, askToSignIn)

  app.get('/', async (_request, reply) => reply.redirect('/hub/ui'))

  app.get('/hub/ui', async (request, reply) => {
    try {
      auth.check(request)
    } catch (error) {
      return askToSignIn(reply, error, request.headers.authorization !== undefined)
    }
    const html = pages.page('panel', '/hub/ui')
    return sendPage(reply, auth.needsToken ? html.replace('<html ', '<html data-signed-in ') : html)
  })

  app.get<{ Params: { file: string } }>('/hub/ui/assets/:file', async (request, reply) => {
    auth.check(request)
    return pages.sendAsset(reply, request.params.file)
  })

  /** Where a browser stands after a wrong token; reloading there is no mistake. */
  app.get('/hub/ui/sign-in', async (_request, reply) => reply.redirect('/hub/ui', 303))

  app.post('/hub/ui/sign-in', { config: { bodyAs: 'text' }, bodyLimit: 16 * 1024 }, async (request, reply) => {
    const token = new URLSearchParams(request.bodyText).get('token') ?? ''
    try {
      return reply.header('set-cookie', auth.signIn(token.trim(), request)).redirect(cameFrom(request), 303)
    } catch (error) {
      return askToSignIn(reply, error, true)
    }
  })

  app.post('/hub/ui/sign-out', { config: { bodyAs: 'text' } }, async (request: Request, reply) => {
    try {
      auth.check(request)
    } catch (error) {
      return askToSignIn(reply, error, false)
    }
    return reply.header('set-cookie', auth.signOutCookie).redirect('/hub/ui', 303)
  })

  /** The form in place of an error, for a person; who may not come in with any token gets the error itself. */
  function askToSignIn(reply: Reply, error: unknown, tried: boolean): Reply {
    if (!(error instanceof AppError) || error.code === 'forbidden') throw error
    if (error.retryAfterMs !== undefined) reply.header('retry-after', Math.ceil(error.retryAfterMs / 1000))
    if (error.code === 'unauthorized') reply.header('www-authenticate', 'Bearer')
    reply.code(SIGN_IN_STATUS[error.code] ?? 400)
    const nonce = randomBytes(16).toString('base64')
    const said = tried ? `<p class="note bad" role="alert">${escapeHtml(error.message)}</p>` : ''
    // The form carries its style inside: the panel's files are behind the door too.
    return sendPage(
      reply,
      pages.inlined('sign-in', nonce).replace('<!--problem-->', () => said),
      nonce,
    )
  }
}

const SIGN_IN_STATUS: Record<string, number> = { unauthorized: 401, too_many_tries: 429 }

/** Back to the pairing that somebody signed in for; else to the panel. */
function cameFrom({ headers: { referer = '' } }: Request): string {
  return /^https?:\/\/[^/]+(\/hub\/pair\/[0-9a-f]{1,64})$/.exec(referer)?.[1] ?? '/hub/ui'
}
