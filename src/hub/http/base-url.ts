import type { IncomingMessage } from 'node:http'

/** The hub's address as the caller knows it: the configured one, else the one it called. */
export function baseUrlOf({ headers }: IncomingMessage, { publicUrl }: { publicUrl: string | null }): string {
  if (publicUrl !== null) return publicUrl
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
  return `${scheme}://${headers.host ?? 'localhost'}`
}
