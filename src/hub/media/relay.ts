import { AppError } from '../../kit/errors.ts'
import { mapStringMembers, parseLossless, withMembers, withoutMembers } from '../../kit/lossless-json.ts'
import type { Client } from '../model.ts'
import type { Cdn } from '../upstream/port.ts'
import { downloadAddress, paramIn, uploadAddress } from './cdn-address.ts'
import { createSeal, type DownloadTicket, looksSealed, type UploadTicket } from './seal.ts'
import { checkAnnounced } from './upload-check.ts'

/** Turns the service's media addresses into the hub's own and back, for clients that can reach the hub alone. */
export interface MediaRelay {
  /** A message on its way to a client: its files are to be had at the hub, whose address is `baseUrl`. */
  inbound(message: string, client: Client, baseUrl: string): string
  /** A client's message on its way out: what is ours becomes the service's again. Fails with `bad_request`. */
  outbound(message: string, client: Client): string
  /** The answer to getuploadurl (both forms of the address) with addresses of the hub's own. Fails with `bad_request`, `too_large`. */
  uploadAnswer(answer: string, request: UploadRequest): string
  /** The right behind an upload's or a download's param. Fails with `unknown_media`. */
  upload(param: string, filekey: string | null): UploadTicket
  download(param: string): { clientId: number; url: string }
  /** What a finished upload is called: a ticket for the client, who puts it into a message or downloads it again. */
  uploaded(param: string, clientId: number): string
}

/** What the hub needs to pass media through itself. */
export interface HubMedia {
  relay: MediaRelay
  cdn: Cdn
  /** The hub's own address as clients know it; null: the one each of them called. */
  publicUrl: string | null
}

export interface UploadRequest {
  /** The body of the client's getuploadurl call. */
  body: unknown
  client: Client
  baseUrl: string
}

export interface MediaRelayOptions {
  /** 32 bytes; tickets last as long as it does. */
  key: Buffer
  /** The one place files are fetched from and sent to. */
  cdnUrl: string
  now: () => number
}

const UPLOAD_LASTS_MS = 60 * 60_000
const DOWNLOAD_LASTS_MS = 7 * 24 * 60 * 60_000
const MEDIA_MEMBERS = new Set(['encrypt_query_param', 'full_url'])
const UPLOAD_MEMBERS = new Set(['upload_param', 'thumb_upload_param', 'upload_full_url'])
const OWN_PARAM = /\/c2c\/(?:up|down)load\?(?:.*&)?encrypted_query_param=(swb_[\w-]+)/
const THUMB_TYPE = 1

export function createMediaRelay({ key, cdnUrl, now }: MediaRelayOptions): MediaRelay {
  const seal = createSeal(key)
  const cdn = new URL(cdnUrl)

  return {
    inbound: (message, client, baseUrl) =>
      mapStringMembers(message, MEDIA_MEMBERS, (value) => {
        const ticket = { kind: 'download' as const, clientId: client.id, issuedAt: now() }
        if (/^https?:/i.test(value)) {
          // An address elsewhere is nothing the hub may be made to call.
          return isCdn(value) ? downloadAddress(`${baseUrl}/c2c`, seal.seal({ ...ticket, url: value })) : value
        }
        return value === '' ? value : seal.seal({ ...ticket, param: value })
      }),
    outbound: (message, client) =>
      mapStringMembers(message, MEDIA_MEMBERS, (value) => {
        const own = looksSealed(value) ? value : OWN_PARAM.exec(value)?.[1]
        if (own === undefined) return value
        const ticket = seal.open(own)
        if (ticket?.kind !== 'download' || ticket.clientId !== client.id)
          throw new AppError(
            'bad_request',
            'encrypt_query_param is not of a file that this client uploaded or was sent.',
            {
              details: { field: 'encrypt_query_param' },
            },
          )
        if (own !== value) return addressOf(ticket)
        return ticket.param ?? paramIn(ticket.url) ?? value
      }),
    uploadAnswer,
    upload(param, filekey) {
      const ticket = seal.open(param)
      if (ticket?.kind !== 'upload' || now() - ticket.issuedAt > UPLOAD_LASTS_MS) throw unknownMedia()
      if (filekey !== null && ticket.filekey !== null && filekey !== ticket.filekey) throw unknownMedia()
      return ticket
    },
    download(param) {
      const ticket = seal.open(param)
      if (ticket?.kind !== 'download' || now() - ticket.issuedAt > DOWNLOAD_LASTS_MS) throw unknownMedia()
      return { clientId: ticket.clientId, url: addressOf(ticket) }
    },
    uploaded: (param, clientId) => seal.seal({ kind: 'download', clientId, issuedAt: now(), param }),
  }

  function uploadAnswer(answer: string, { body, client, baseUrl }: UploadRequest): string {
    const asked = fieldsOf(body)
    const answered = fieldsOf(parseLossless(answer))
    const fullUrl = textOf(answered.upload_full_url)
    if (fullUrl === null || !isCdn(fullUrl)) return answer
    const filekey = textOf(asked.filekey)
    const common = {
      kind: 'upload' as const,
      clientId: client.id,
      issuedAt: now(),
      filekey,
      keyHex: textOf(asked.aeskey),
    }
    const file = {
      cipherBytes: sizeOf(asked.filesize),
      plainBytes: sizeOf(asked.rawsize),
      mediaType: sizeOf(asked.media_type),
    }
    checkAnnounced({ ...common, ...file })
    const param = seal.seal({ ...common, ...file, url: fullUrl })
    const thumbParam = textOf(answered.thumb_upload_param)
    const thumb = {
      cipherBytes: sizeOf(asked.thumb_filesize),
      plainBytes: sizeOf(asked.thumb_rawsize),
      mediaType: THUMB_TYPE,
    }
    const thumbs =
      thumbParam === null
        ? {}
        : { thumb_upload_param: seal.seal({ ...common, ...thumb, url: uploadAddress(cdnUrl, thumbParam, filekey) }) }
    const members = JSON.stringify({
      upload_param: param,
      ...thumbs,
      upload_full_url: uploadAddress(`${baseUrl}/c2c`, param, filekey),
    })
    return withMembers(withoutMembers(answer, UPLOAD_MEMBERS), members.slice(1, -1))
  }

  function isCdn(url: string): boolean {
    if (!URL.canParse(url)) return false
    const { origin, username, password } = new URL(url)
    return origin === cdn.origin && username === '' && password === ''
  }

  function addressOf({ url, param = '' }: DownloadTicket): string {
    return url ?? downloadAddress(cdnUrl, param)
  }
}

/** The same text for a forged, an expired and a damaged one: nothing can be learnt by trying. */
export function unknownMedia(): AppError {
  return new AppError('unknown_media', 'encrypted_query_param is not known here or has expired; ask for the file anew.')
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function sizeOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : null
}
