import type { Server } from 'node:http'
import { type HttpServer, httpServer } from '../../kit/http.ts'
import type { Log } from '../../kit/log.ts'
import type { Hub } from '../hub.ts'
import { type AdminAuthOptions, adminAuth } from './admin-auth.ts'
import { adminRoutes } from './admin-routes.ts'
import { hubErrorAnswer } from './errors.ts'
import { mediaRoutes } from './media-routes.ts'
import { pairingRoutes } from './pairing-routes.ts'
import { pollServer } from './polls.ts'
import { openReceipts, type Receipts } from './receipts.ts'
import { relayRoutes } from './relay-routes.ts'
import { type StatusOptions, statusRoutes } from './status-routes.ts'
import { uiRoutes } from './ui-routes.ts'

const ADMIN_BODY_BYTES = 256 * 1024
/** For 100 MiB over a slow line. */
const UPLOAD_MS = 10 * 60_000

/** A server that was there before the hub and outlives it. */
export interface SharedServer {
  server: Server
  receipts: Receipts
}

/** The hub's HTTP: the client endpoints, administration, the panel, and its state. */
export function hubServer(
  hub: Hub,
  {
    log,
    shared,
    ...options
  }: { log: Log; publicUrl: string | null; shared?: SharedServer } & AdminAuthOptions & StatusOptions,
): HttpServer {
  const receipts = shared?.receipts ?? openReceipts()
  const polls = pollServer(hub, receipts, log)
  // A long integer where a text belongs must be seen as what it is; what is passed on goes as the text it came in.
  const app = httpServer({
    errorAnswer: hubErrorAnswer(log),
    bodyLimitBytes: ADMIN_BODY_BYTES,
    parseJson: JSON.parse,
    ...(hub.media && { requestTimeoutMs: UPLOAD_MS }),
    ...(shared ? { server: shared.server } : { first: polls.first }),
  })
  if (shared === undefined) receipts.watch(app.server)
  const auth = adminAuth(options)
  // The routes have their own check; this one keeps strangers from learning which paths there are not.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.is404 && request.url.startsWith('/hub/')) auth.check(request)
    done()
  })
  relayRoutes(app, hub, polls)
  if (hub.media !== null) mediaRoutes(app, hub, hub.media)
  adminRoutes(app, hub, auth)
  uiRoutes(app, hub, auth)
  pairingRoutes(app, hub, options)
  statusRoutes(app, hub, options)
  return app
}
