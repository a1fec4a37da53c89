import { parseLossless, withMembers, withoutMembers } from '../../kit/lossless-json.ts'
import { paramIn, uploadAddress } from '../media/cdn-address.ts'

const STATUS_FIELDS = new Set(['ret', 'errcode', 'errmsg'])

/** What an upload address is made of, where the service leaves it to the client. */
export interface UploadPlace {
  cdnUrl: string
  /** From the request. */
  filekey: string | null
}

/**
 * The service's answer to getuploadurl without its status fields, with both forms of the address: half of the clients
 * read `upload_param`, the other half `upload_full_url`, and the service gives one or both.
 */
export function readUploadAnswer(answer: string, place: UploadPlace): string {
  const body = withoutMembers(answer, STATUS_FIELDS)
  const fields = parseLossless(body)
  if (typeof fields !== 'object' || fields === null) return body
  if (!('upload_full_url' in fields) || typeof fields.upload_full_url !== 'string' || fields.upload_full_url === '') {
    return withFullUrl(body, 'upload_param' in fields ? fields.upload_param : null, place)
  }
  const hasParam = 'upload_param' in fields && typeof fields.upload_param === 'string' && fields.upload_param !== ''
  const param = hasParam ? null : paramIn(fields.upload_full_url)
  if (param === null) return body
  return withMembers(withoutMembers(body, new Set(['upload_param'])), `"upload_param":${JSON.stringify(param)}`)
}

function withFullUrl(body: string, param: unknown, { cdnUrl, filekey }: UploadPlace): string {
  if (typeof param !== 'string' || param === '') return body
  const url = uploadAddress(cdnUrl, param, filekey)
  return withMembers(withoutMembers(body, new Set(['upload_full_url'])), `"upload_full_url":${JSON.stringify(url)}`)
}
