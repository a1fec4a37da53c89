import { randomBytes } from 'node:crypto'
import { AppError } from '../../kit/errors.ts'
import type { HttpServer, Reply, Request } from '../../kit/http.ts'
import type { AdminAuth } from './admin-auth.ts'
import { panelPage, signInPage } from './ui-page.ts'

/** The browser panel and its door. */
export function uiRoutes(app: HttpServer, auth: AdminAuth): void {
  app.get('/', async (_request, reply) => reply.redirect('/hub/ui'))

  app.get('/hub/ui', async (request, reply) => {
    try {
      auth.check(request)
    } catch (error) {
      return askToSignIn(reply, error, request.headers.authorization !== undefined)
    }
    return page(reply, (nonce) => panelPage(nonce, { canSignOut: auth.needsToken }))
  })

  /** Where a browser stands after a wrong token; reloading there is no mistake. */
  app.get('/hub/ui/sign-in', async (_request, reply) => reply.redirect('/hub/ui', 303))

  app.post('/hub/ui/sign-in', { config: { bodyAs: 'text' }, bodyLimit: 16 * 1024 }, async (request, reply) => {
    const token = new URLSearchParams(request.bodyText).get('token') ?? ''
    try {
      return reply.header('set-cookie', auth.signIn(token.trim(), request)).redirect('/hub/ui', 303)
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
}

const SIGN_IN_STATUS: Record<string, number> = { unauthorized: 401, too_many_tries: 429 }

/** The form in place of an error, for a person; who may not come in with any token gets the error itself. */
function askToSignIn(reply: Reply, error: unknown, tried: boolean): Reply {
  if (!(error instanceof AppError) || error.code === 'forbidden') throw error
  if (error.retryAfterMs !== undefined) reply.header('retry-after', Math.ceil(error.retryAfterMs / 1000))
  if (error.code === 'unauthorized') reply.header('www-authenticate', 'Bearer')
  reply.code(SIGN_IN_STATUS[error.code] ?? 400)
  return page(reply, (nonce) => signInPage(nonce, tried ? error.message : ''))
}

function page(reply: Reply, render: (nonce: string) => string): Reply {
  const nonce = randomBytes(16).toString('base64')
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "connect-src 'self'",
    'img-src data:',
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  return reply
    .type('text/html; charset=utf-8')
    .headers({
      'content-security-policy': policy.join('; '),
      'x-content-type-options': 'nosniff',
      // Not no-referrer: with it browsers send the page's own forms with "Origin: null", as from another site.
      'referrer-policy': 'same-origin',
      'cache-control': 'no-store',
    })
    .send(render(nonce))
}
