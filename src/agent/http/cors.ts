import type { HttpServer } from '../../kit/http.ts'

const METHODS = 'GET, HEAD, POST, PATCH, DELETE'
const HEADERS = 'Content-Type, X-API-Key, Authorization, Last-Event-ID, Idempotency-Key'
const SHOWN = 'Location, Link, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, X-Request-Id'
const REMEMBER_SECONDS = '600'

/** Lets pages of these sites read answers. With none listed, no answer says anything of other sites. */
export function allowOrigins(app: HttpServer, origins: readonly string[]): void {
  if (origins.length === 0) return
  app.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers
    reply.header('vary', 'Origin')
    if (origin === undefined || !origins.includes(origin.toLowerCase())) return done()
    reply.headers({ 'access-control-allow-origin': origin, 'access-control-expose-headers': SHOWN })
    // The browser asks before it sends what a form could not; it carries no key yet.
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return done()
    reply
      .code(204)
      .headers({
        'access-control-allow-methods': METHODS,
        'access-control-allow-headers': HEADERS,
        'access-control-max-age': REMEMBER_SECONDS,
      })
      .send()
  })
}
