import { parseLossless, withMembers, withoutMembers } from '../../kit/lossless-json.ts'

const STATUS_FIELDS = new Set(['ret', 'errcode', 'errmsg'])

/**
 * The service's answer to getuploadurl without its status fields, with both forms of the address where one can be had
 * from the other: half of the clients read `upload_param`, the other half `upload_full_url`.
 */
export function readUploadAnswer(answer: string): string {
  const body = withoutMembers(answer, STATUS_FIELDS)
  const fields = parseLossless(body)
  if (typeof fields !== 'object' || fields === null || !('upload_full_url' in fields)) return body
  const hasParam = 'upload_param' in fields && typeof fields.upload_param === 'string' && fields.upload_param !== ''
  const param = hasParam ? null : paramIn(fields.upload_full_url)
  if (param === null) return body
  return withMembers(withoutMembers(body, new Set(['upload_param'])), `"upload_param":${JSON.stringify(param)}`)
}

/** Not by `URLSearchParams`: that makes a space of a plus, and these are base64. */
function paramIn(url: unknown): string | null {
  const [, coded] = (typeof url === 'string' && /[?&]encrypted_query_param=([^&#]+)/.exec(url)) || []
  try {
    return coded === undefined ? null : decodeURIComponent(coded)
  } catch {
    return null
  }
}
