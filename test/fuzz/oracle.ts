import { Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { documentCheck } from '../support/openapi-check.ts'
import type { Exchanged } from './exchange.ts'
import type { HostileRequest } from './requests.ts'

/** What is wrong with an answer, or null. */
export type Judge = (request: HostileRequest, answer: Exchanged) => string | null

const HubFailure = Compile(Type.Object({ error: Type.Object({ code: Type.String(), message: Type.String() }) }))
const RelayFailure = Compile(
  Type.Object({ ret: Type.Integer(), errcode: Type.Integer(), errmsg: Type.String({ minLength: 1 }) }),
)
/** The statuses of docs/hub-api.md. */
const HUB_STATUSES = new Set([200, 201, 204, 302, 303, 400, 401, 403, 404, 405, 409, 413, 417, 422, 429])
/** What is no HTTP request can be refused so. */
const BROKEN_STATUSES = new Set([0, 400, 408, 413, 417, 431])

/** Holds answers against the agent's own description. */
export function agentJudge(): Judge {
  const check = documentCheck(true)
  return (request, answer) => {
    const { method, path } = request
    const { status, headers } = answer
    const common = commonTrouble(request, answer)
    if (common !== null || !request.isHttp || answer.end !== 'answered') return common
    if (status === 417) return isFailure(answer) ? null : 'an error of another shape'
    try {
      check.answer({ method, path, status, headers, body: jsonOf(answer) })
      return null
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }
}

/** Holds answers against the hub's page: its statuses, and the two shapes of its errors. */
export function hubJudge(): Judge {
  return (request, answer) => {
    const common = commonTrouble(request, answer)
    if (common !== null || !request.isHttp || answer.end !== 'answered') return common
    const { status } = answer
    if (!HUB_STATUSES.has(status)) return `${status} is not documented`
    if (status < 400) return null
    if (status === 417) return isFailure(answer) ? null : 'an error of another shape'
    const isRelay = /^\/(relay|ilink|c2c)\//.test(request.path)
    const isPage = (answer.headers.get('content-type') ?? '').startsWith('text/html')
    if (isPage && /^\/hub\/(ui|pair)/.test(request.path)) return null
    if (!isRelay) return isFailure(answer) ? null : 'an error of another shape'
    const body = jsonOf(answer)
    if (!RelayFailure.Check(body)) return 'an error of another shape'
    return body.ret === status && body.errcode === status ? null : `ret ${body.ret} with status ${status}`
  }
}

/** What no server may do, whatever it was sent. */
function commonTrouble({ isHttp, isLost }: HostileRequest, answer: Exchanged): string | null {
  const { status, headers, end } = answer
  if (status >= 500) return `${status}: ${answer.body.slice(0, 300)}`
  if (headers.get('set-cookie')?.includes('fuzz=1')) return 'a header was injected'
  if (isHttp && end === 'silent') return 'no answer came'
  if (isHttp && !isLost && status === 0) return 'the connection was closed without an answer'
  if (!isHttp && status >= 400 && BROKEN_STATUSES.has(status) && end === 'answered' && jsonOf(answer) === undefined)
    return 'an error without JSON'
  return null
}

function isFailure(answer: Exchanged): boolean {
  return HubFailure.Check(jsonOf(answer))
}

function jsonOf({ body, headers }: Exchanged): unknown {
  if (!headers.get('content-type')?.includes('json')) return undefined
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
