import { AppError } from '../../kit/errors.ts'
import type { Request } from '../../kit/http.ts'
import type { Hub } from '../hub.ts'
import type { Client } from '../model.ts'

/** Who makes a client call. */
export interface Caller {
  client: Client
  token: string
  tokenHash: string
}

/** Finds the client behind a call, marks it as seen, and holds it to its rate. */
export function relayCaller(hub: Hub): (request: Request) => Caller {
  return (request) => {
    const token = bearer(request)
    const known = token === null ? undefined : hub.registry.authenticate(token)
    if (token === null || known === undefined) {
      hub.figures.refusedTokens.inc()
      const text =
        token === null
          ? 'Authorization is missing; send "Authorization: Bearer <virtual token>".'
          : 'This token is not known here; register at POST /hub/register to get one.'
      throw new AppError('unauthorized', text)
    }
    hub.registry.seen(known.client)
    hub.rate.take(known.client.id)
    return { ...known, token }
  }
}

/** The token of a bearer header; null when there is none, or it is not one. */
export function bearer(request: Request): string | null {
  return /^bearer +(\S+)$/i.exec(request.headers.authorization?.trim() ?? '')?.[1] ?? null
}
