import { parseLossless, withMembers, withoutMembers } from '../../kit/lossless-json.ts'

const STATUS_FIELDS = new Set(['ret', 'errcode', 'errmsg'])

/**
 * The service's answer to getuploadurl without its status fields, with both forms of the address where one can be had
 * from the other: half of the clients read `upload_param`, the other half `upload_full_url`.
 */
export function readUploadAnswer(answer: string): string {
  const body = withoutMembers(answer, STATUS_FIELDS)
  const fields = parseLossless(body)
  if (typeof fields !== 'object' || fields === null) return body
  if ('upload_param' in fields || !('upload_full_url' in fields) || typeof fields.upload_full_url !== 'string')
    return body
  const param =
    URL.canParse(fields.upload_full_url) && new URL(fields.upload_full_url).searchParams.get('encrypted_query_param')
  return param ? withMembers(body, `"upload_param":${JSON.stringify(param)}`) : body
}
