import { type TSchema, Type } from 'typebox'
import { OPERATIONS } from '../../src/agent/http/operations.ts'
import * as hub from '../../src/wire/hub.ts'
import * as relay from '../../src/wire/relay.ts'

/** A call that a server takes. */
export interface Operation {
  method: string
  /** With `{parts}` to be filled in. */
  path: string
  body?: TSchema
  query: readonly string[]
}

const GET = (path: string, query: readonly string[] = []): Operation => ({ method: 'GET', path, query })
const call = (method: string, path: string, body?: TSchema): Operation => ({
  method,
  path,
  query: [],
  ...(body ? { body } : {}),
})

const RELAY_CALLS: readonly [string, TSchema][] = [
  ['getupdates', relay.GetUpdatesBody],
  ['sendmessage', relay.SendTextBody],
  ['sendmessage', relay.SendMessageBody],
  ['sendtyping', relay.SendTypingBody],
  ['getconfig', relay.AnyBody],
  ['getuploadurl', relay.AnyBody],
  ['msg/notifystart', relay.AnyBody],
  ['msg/notifystop', relay.AnyBody],
]
const LIST = Object.keys(hub.ListQuery.properties)

/** Every call of the hub. */
export const HUB_OPERATIONS: readonly Operation[] = [
  ...['/relay/bot', '/ilink/bot'].flatMap((prefix) =>
    RELAY_CALLS.map(([path, schema]) => call('POST', `${prefix}/${path}`, schema)),
  ),
  GET('/ilink/bot/get_qrcode_status', ['qrcode']),
  call('POST', '/hub/register', hub.RegisterBody),
  GET('/hub/clients'),
  GET('/hub/clients/{name}'),
  call('PATCH', '/hub/clients/{name}', hub.PatchClientBody),
  call('DELETE', '/hub/clients/{name}'),
  call('POST', '/hub/clients/{name}/rotate', hub.RotateBody),
  GET('/hub/default'),
  call('PUT', '/hub/default', hub.DefaultClientBody),
  call('POST', '/hub/route/dry-run', hub.DryRunBody),
  GET('/hub/messages', LIST),
  call('POST', '/hub/messages/{id}/replay', hub.ReplayBody),
  GET('/hub/dead-letters', LIST),
  call('POST', '/hub/dead-letters/{id}/replay', hub.ReplayBody),
  call('DELETE', '/hub/dead-letters/{id}'),
  call('POST', '/hub/dead-letters/replay', hub.BulkBody),
  call('POST', '/hub/dead-letters/discard', hub.BulkBody),
  GET('/hub/budget', Object.keys(hub.BudgetQuery.properties)),
  GET('/hub/sends', Object.keys(hub.SendsQuery.properties)),
  GET('/hub/overview'),
  GET('/hub/conversations', ['before', 'limit']),
  GET('/hub/upstream'),
  GET('/hub/upstream/login/{id}'),
  call('POST', '/hub/upstream/login/{id}/verify-code', hub.VerifyCodeBody),
  call('DELETE', '/hub/upstream/login/{id}'),
  GET('/hub/pairings'),
  call('POST', '/hub/pairings/{id}/approve', hub.ApproveBody),
  call('POST', '/hub/pairings/{id}/reject'),
  GET('/hub/pair/{id}'),
  GET('/hub/ui'),
  GET('/hub/ui/assets/{file}'),
  call('POST', '/hub/ui/sign-in', Type.Object({ token: Type.String() })),
  GET('/health'),
  GET('/ready'),
  GET('/metrics'),
  GET('/'),
]

/** Every call that the agent server describes. */
export const AGENT_OPERATIONS: readonly Operation[] = OPERATIONS.map(({ method, path, body, query }) => ({
  method: method.toUpperCase(),
  path,
  query: Object.keys(query ?? {}),
  ...(body ? { body: body.schema } : {}),
}))
