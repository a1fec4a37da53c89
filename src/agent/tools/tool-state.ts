import { createHash } from 'node:crypto'
import { relative, resolve } from 'node:path'
import type { Workspace } from '../workspace/port.ts'
import type { ToolState } from './port.ts'

/** A place in a session's memory whose type is known: made when it is first asked for. */
export function slot<T extends object>(name: string, make: () => T): (state: ToolState) => T {
  const made = new WeakSet<object>()
  const isOurs = (value: unknown): value is T => typeof value === 'object' && value !== null && made.has(value)
  return (state) => {
    const kept = state.get(name)
    if (isOurs(kept)) return kept
    const fresh = make()
    made.add(fresh)
    state.set(name, fresh)
    return fresh
  }
}

const MAX_SEEN = 2_000

/** What a session last saw of each file. */
export interface SeenFiles {
  note(path: string, bytes: Buffer): void
  forget(path: string): void
  /** It was seen, and has changed since. */
  isStale(path: string, bytes: Buffer): boolean
}

/** The files that a session has seen, by whatever path. */
export function seenFiles(state: ToolState, workspace: Workspace): SeenFiles {
  const seen = seenIn(state)
  const keyOf = (path: string) => fromRoot(workspace, path)
  return {
    note(path, bytes) {
      const key = keyOf(path)
      seen.delete(key)
      seen.set(key, digest(bytes))
      for (const oldest of seen.keys()) {
        if (seen.size <= MAX_SEEN) break
        seen.delete(oldest)
      }
    },
    forget: (path) => void seen.delete(keyOf(path)),
    isStale(path, bytes) {
      const known = seen.get(keyOf(path))
      return known !== undefined && known !== digest(bytes)
    },
  }
}

/** A path however it was written, as one from the root; `.` is the root. */
export function fromRoot({ root }: Workspace, path: string): string {
  return relative(root, resolve(root, path)) || '.'
}

const seenIn = slot('files', () => new Map<string, string>())

function digest(bytes: Buffer): string {
  return createHash('sha1').update(bytes).digest('base64')
}

const locked = new Map<string, Promise<unknown>>()

/** Reading, changing and writing a file as one: others of this server who do the same to it wait. */
export async function withFileLock<T>({ root }: Workspace, path: string, work: () => Promise<T>): Promise<T> {
  const key = resolve(root, path)
  const before = locked.get(key)
  const mine = (before ?? Promise.resolve()).then(work, work)
  const settled = mine.catch(() => {})
  locked.set(key, settled)
  try {
    return await mine
  } finally {
    if (locked.get(key) === settled) locked.delete(key)
  }
}
