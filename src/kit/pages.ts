import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { AppError } from './errors.ts'
import type { Reply } from './http.ts'

/** The built web pages. Every file is known by its name, so no path can lead elsewhere. */
export interface Pages {
  /** A page that finds its assets under `prefix`. Fails with `not_found` when the pages were not built. */
  page(name: string, prefix: string): string
  /** A page with its style inside, under a nonce: for who may not fetch assets. */
  inlined(name: string, nonce: string): string
  /** Answers with a file that pages refer to. Fails with `not_found`. */
  sendAsset(reply: Reply, file: string): Reply
}

// The same from src/kit/ and from dist/kit/.
const BUILT = fileURLToPath(new URL('../../dist/web', import.meta.url))
const TYPES: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data: blob:",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
]

/** The pages in `dir`, read when the first one is asked for. */
export function openPages(dir: string = BUILT): Pages {
  let files: { pages: Map<string, string>; assets: Map<string, Buffer> } | undefined
  const read = () => {
    files ??= { pages: readAll(dir, String), assets: readAll(join(dir, 'assets'), (bytes) => bytes) }
    return files
  }
  const find = (name: string) => {
    const text = read().pages.get(`${name}.html`)
    if (text !== undefined) return text
    throw new AppError('not_found', 'The web pages are not there; npm run build makes them.')
  }

  return {
    page: (name, prefix) => find(name).replaceAll('"./assets/', `"${prefix}/assets/`),
    inlined: (name, nonce) =>
      find(name).replace(/<link rel="stylesheet"[^>]*?href="\.\/assets\/([^"]+)"[^>]*>/g, (_all, file: string) => {
        const style = read().assets.get(file)?.toString() ?? ''
        return `<style nonce="${nonce}">${style}</style>`
      }),
    sendAsset(reply, file) {
      const bytes = read().assets.get(file)
      if (bytes === undefined) throw new AppError('not_found', 'There is no such file; load the page again.')
      const type = TYPES[file.slice(file.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
      return reply
        .type(type)
        .headers({
          // Its name holds a hash of what is in it.
          'cache-control': 'private, max-age=31536000, immutable',
          'x-content-type-options': 'nosniff',
        })
        .send(bytes)
    },
  }
}

/** Answers with a page under a policy that allows its own files and nothing else; `nonce` lets an inlined style in. */
export function sendPage(reply: Reply, html: string, nonce?: string): Reply {
  const policy = POLICY.map((rule) =>
    nonce !== undefined && rule.startsWith('style-src') ? `style-src 'nonce-${nonce}'` : rule,
  )
  return reply
    .type('text/html; charset=utf-8')
    .headers({
      'content-security-policy': policy.join('; '),
      'x-content-type-options': 'nosniff',
      // Not no-referrer: with it browsers send the page's own forms with "Origin: null", as from another site.
      'referrer-policy': 'same-origin',
      'cache-control': 'no-store',
    })
    .send(html)
}

function readAll<T>(dir: string, as: (bytes: Buffer) => T): Map<string, T> {
  try {
    const names = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isFile())
    return new Map(names.map(({ name }) => [name, as(readFileSync(join(dir, name)))]))
  } catch {
    return new Map()
  }
}
