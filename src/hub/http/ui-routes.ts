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
      if (!(error instanceof AppError) || error.code === 'forbidden') throw error
      const wrongTry = request.headers.authorization !== undefined
      return page(reply.code(401).header('www-authenticate', 'Bearer'), (nonce) =>
        signInPage(nonce, wrongTry ? error.message : ''),
      )
    }
    return page(reply, (nonce) => panelPage(nonce, { canSignOut: auth.needsToken }))
  })

  app.post('/hub/ui/sign-in', { config: { bodyAs: 'text' }, bodyLimit: 16 * 1024 }, async (request, reply) => {
    const token = new URLSearchParams(request.bodyText).get('token') ?? ''
    try {
      return reply.header('set-cookie', auth.signIn(token.trim(), request)).redirect('/hub/ui', 303)
    } catch (error) {
      if (!(error instanceof AppError) || error.code === 'forbidden') throw error
      const status = error.code === 'too_many_tries' ? 429 : error.code === 'unauthorized' ? 401 : 400
      return page(reply.code(status), (nonce) => signInPage(nonce, error.message))
    }
  })

  app.post('/hub/ui/sign-out', { config: { bodyAs: 'text' } }, async (request: Request, reply) => {
    auth.check(request)
    return reply.header('set-cookie', auth.signOutCookie).redirect('/hub/ui', 303)
  })
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
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
    .send(render(nonce))
}
