import type { IncomingHttpHeaders } from 'node:http'
import { AppError } from '../../kit/errors.ts'
import type { Hub } from '../hub.ts'
import type { Client } from '../model.ts'

/** Who makes a client call. */
export interface Caller {
  client: Client
  token: string
  tokenHash: string
}

/** Finds the client behind a call, marks it as seen, and holds it to its rate. */
export function relayCaller(hub: Hub): (request: { headers: IncomingHttpHeaders }) => Caller {
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
    return { client: known.client, tokenHash: known.tokenHash, token }
  }
}

/** The token of a bearer header; null when there is none, or it is not one. */
export function bearer(request: { headers: IncomingHttpHeaders }): string | null {
  return /^bearer +(\S+)$/i.exec(request.headers.authorization?.trim() ?? '')?.[1] ?? null
}

/** Holds the `token` of a body, where it has one, against the header's. */
export function checkBodyToken(body: unknown, { token }: Caller): void {
  const isObject = typeof body === 'object' && body !== null
  if (isObject && 'token' in body && typeof body.token === 'string' && body.token !== token) {
    throw new AppError(
      'unauthorized',
      'The token in the body is not the one in the Authorization header; send the same, or none.',
    )
  }
}
