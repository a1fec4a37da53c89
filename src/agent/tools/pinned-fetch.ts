import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import { AppError, errorText } from '../../kit/errors.ts'

/** One GET, to an address that was checked. */
export interface PinnedRequest {
  url: URL
  /** The connection goes here, whatever the name says by now. */
  address: string
  signal: AbortSignal
  maxBytes: number
}

/** What came back; redirects are not followed. */
export interface PinnedAnswer {
  status: number
  location: string | null
  contentType: string
  body: Buffer
  /** There was more than `maxBytes`. */
  truncated: boolean
}

/** Asks the address that it is given, and no other. */
export type PinnedFetch = (request: PinnedRequest) => Promise<PinnedAnswer>

const HEADERS = {
  accept: 'text/html,application/xhtml+xml,text/plain,application/json;q=0.9,*/*;q=0.5',
  'accept-encoding': 'identity',
  'user-agent': 'Mozilla/5.0 (compatible; Switchboard)',
}

/** Asks over a connection of its own. Certificates are checked against the name. */
export const pinnedFetch: PinnedFetch = async ({ url, address, signal, maxBytes }) => {
  const secure = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const family = isIP(address)
  const options: RequestOptions & { servername?: string } = {
    host,
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    path: url.pathname + url.search,
    method: 'GET',
    headers: { host: url.host, ...HEADERS },
    agent: false,
    signal,
    lookup: (_name, asked, answer) => {
      if (asked.all) answer(null, [{ address, family }])
      else answer(null, address, family)
    },
    ...(secure && isIP(host) === 0 ? { servername: host } : {}),
  }
  try {
    const response = await send(secure, options)
    return await readAnswer(response, maxBytes)
  } catch (error) {
    if (signal.aborted)
      throw new AppError('too_slow', `${url.host} did not answer in time, or the fetch was cancelled.`)
    if (error instanceof AppError) throw error
    throw new AppError('unreachable', `${url.host} could not be reached: ${errorText(error)}.`)
  }
}

function send(secure: boolean, options: RequestOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = secure ? httpsRequest(options) : httpRequest(options)
    request.on('response', resolve)
    request.on('error', reject)
    request.end()
  })
}

async function readAnswer(response: IncomingMessage, maxBytes: number): Promise<PinnedAnswer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response) {
    chunks.push(chunk)
    length += chunk.length
    if (length > maxBytes) break
  }
  response.destroy()
  const { body, truncated } = unpack(Buffer.concat(chunks), response.headers['content-encoding'] ?? '', maxBytes)
  return {
    status: response.statusCode ?? 0,
    location: response.headers.location ?? null,
    contentType: response.headers['content-type'] ?? '',
    body,
    truncated,
  }
}

/** Some servers compress though nobody asked for it. A small answer that unpacks to a huge one is refused. */
function unpack(bytes: Buffer, encoding: string, maxBytes: number): { body: Buffer; truncated: boolean } {
  const ways: Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Buffer> = {
    gzip: gunzipSync,
    'x-gzip': gunzipSync,
    deflate: inflateSync,
    br: brotliDecompressSync,
  }
  const way = ways[encoding.trim().toLowerCase()]
  if (way === undefined) return { body: bytes.subarray(0, maxBytes), truncated: bytes.length > maxBytes }
  try {
    return { body: way(bytes, { maxOutputLength: maxBytes }), truncated: false }
  } catch {
    throw new AppError('bad_answer', 'The answer is compressed and cannot be unpacked, or is too large when it is.')
  }
}
