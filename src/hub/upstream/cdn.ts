import type { Readable } from 'node:stream'
import { Agent, type Dispatcher } from 'undici'
import { AppError } from '../../kit/errors.ts'
import { type Cdn, UpstreamError } from './port.ts'

const CONNECT_MS = 10_000
/** For a file to go out and be answered; the caller's own signal may end it earlier. */
const UPLOAD_MS = 10 * 60_000
const SILENCE_MS = 60_000

/** The service's file store over HTTP. Redirects are not followed: only the addresses that were given are called. */
export function ilinkCdn(): Cdn & { close(): Promise<void> } {
  const agent = new Agent({ connectTimeout: CONNECT_MS, keepAliveTimeout: 10_000 })

  return {
    async upload(url, body, length, signal) {
      const answer = await call('upload', url, {
        method: 'POST',
        headers: {
          'content-type': 'application/octet-stream',
          ...(length === null ? {} : { 'content-length': String(length) }),
        },
        body,
        signal,
        headersTimeout: UPLOAD_MS,
      })
      await answer.body.dump()
      const param = answer.headers['x-encrypted-param']
      if (typeof param !== 'string' || param === '')
        throw new UpstreamError('bad_answer', 'upload was answered without x-encrypted-param')
      return param
    },
    async download(url, signal) {
      const answer = await call('download', url, { method: 'GET', signal, headersTimeout: SILENCE_MS })
      const length = Number(answer.headers['content-length'])
      return { body: answer.body, length: Number.isSafeInteger(length) ? length : null }
    },
    close: () => agent.destroy(),
  }

  async function call(
    what: string,
    url: string,
    options: Pick<Dispatcher.RequestOptions, 'method' | 'headers' | 'signal' | 'headersTimeout'> & { body?: Readable },
  ): Promise<Dispatcher.ResponseData> {
    const { origin, pathname, search } = new URL(url)
    let answer: Dispatcher.ResponseData
    try {
      answer = await agent.request({ origin, path: pathname + search, bodyTimeout: SILENCE_MS, ...options })
    } catch (error) {
      // What the body itself failed with is the caller's to hear.
      if (error instanceof AppError) throw error
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'UNKNOWN'
      throw new UpstreamError('unreachable', `${what} failed (${code})`, { cause: error })
    }
    if (answer.statusCode === 200) return answer
    await answer.body.dump()
    const kind = answer.statusCode >= 400 && answer.statusCode < 500 ? 'refused' : 'unreachable'
    throw new UpstreamError(kind, `${what} was answered with HTTP ${answer.statusCode}`, {
      upstreamCode: answer.statusCode,
    })
  }
}
