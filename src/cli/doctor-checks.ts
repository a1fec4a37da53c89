import { once } from 'node:events'
import { access, constants, mkdtemp, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { errorText } from '../kit/errors.ts'

/** What a check found; `advice` says what to do about it. */
export interface Finding {
  check: string
  state: 'ok' | 'note' | 'problem'
  says: string
  advice: string | null
}

const LEAST_NODE = [20, 19] as const
const ANSWER_MS = 2_000

/** Node itself. */
export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const ok = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1])
  const wanted = LEAST_NODE.join('.')
  return {
    check: 'node',
    state: ok ? 'ok' : 'problem',
    says: `Node ${version}`,
    advice: ok ? null : `Install Node ${wanted} or newer.`,
  }
}

/** A port that a service wants: free, or taken by that service already. */
export async function checkPort(
  check: string,
  { host, port }: { host: string; port: number },
  flag: string,
): Promise<Finding> {
  const at = `${host}:${port}`
  if (port === 0 || (await isFree(host, port))) return { check, state: 'ok', says: `${at} is free`, advice: null }
  if (await isSwitchboard(check, `http://${host.includes(':') ? `[${host}]` : host}:${port}`))
    return { check, state: 'ok', says: `${at} answers: it is running`, advice: null }
  return {
    check,
    state: 'problem',
    says: `${at} is taken by another program`,
    advice: `Stop that program, or choose another address with ${flag}.`,
  }
}

/** The data directory: there and writable, or where it can be made. */
export async function checkDataDirectory(dir: string): Promise<Finding> {
  const path = resolve(dir)
  const check = 'data directory'
  try {
    const existing = await nearest(path)
    if (!(await stat(existing)).isDirectory()) throw new Error(`${existing} is no folder`)
    await access(existing, constants.W_OK | constants.X_OK)
    // Writable by its mode may still be a full disk, one that is mounted read-only, or no disk at all.
    await rm(await mkdtemp(join(existing, '.doctor-')), { recursive: true })
    if (existing !== path) return { check, state: 'ok', says: `${path} is not there yet and can be made`, advice: null }
    return { check, state: 'ok', says: `${path} can be written`, advice: null }
  } catch (error) {
    return {
      check,
      state: 'problem',
      says: `${path} cannot be used: ${errorText(error)}`,
      advice: 'Make it writable for this user, or choose another with --data-dir.',
    }
  }
}

/** The messaging service: none, or one that answers. */
export async function checkUpstream(url: string | null): Promise<Finding> {
  const check = 'upstream'
  if (url === null) {
    return {
      check,
      state: 'note',
      says: 'no messaging service is configured, so a simulated one is used',
      advice: 'Set RELAY_UPSTREAM_URL (and RELAY_UPSTREAM_TOKEN) for a real one.',
    }
  }
  try {
    await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS * 2), redirect: 'manual' })
    return { check, state: 'ok', says: `${url} answers`, advice: null }
  } catch {
    return {
      check,
      state: 'problem',
      says: `${url} does not answer`,
      advice: 'Check RELAY_UPSTREAM_URL, and that this machine can reach it.',
    }
  }
}

async function nearest(path: string): Promise<string> {
  const there = await stat(path).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
      throw error
    },
  )
  return there || dirname(path) === path ? path : nearest(dirname(path))
}

async function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer()
  try {
    server.listen(port, host)
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
    return true
  } catch {
    return false
  }
}

/** Each service says at /health what it is. */
async function isSwitchboard(check: string, url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/health`, {
      signal: AbortSignal.timeout(ANSWER_MS),
      headers: { accept: 'application/json' },
    })
    const body: { status?: string; upstream?: string; model?: string } = JSON.parse(await response.text())
    if (check === 'hub port') return typeof body.upstream === 'string'
    if (check === 'agent port') return typeof body.model === 'string'
    return body.status === 'ok'
  } catch {
    return false
  }
}
