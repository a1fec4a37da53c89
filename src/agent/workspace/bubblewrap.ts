import { type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync } from 'node:fs'
import { lstat, open, readlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorText } from '../../kit/errors.ts'
import { sleep } from '../../kit/retry.ts'
import { isInside } from './paths.ts'

/** What this machine can do to shut programs in. */
export type Sandbox = WorkingSandbox | { works: false; reason: string }

/** Bubblewrap works, and what it can do. */
export interface WorkingSandbox {
  works: true
  /** The flags that give a command the folders beside /usr that programs need. */
  system: readonly string[]
  /** Bubblewrap is new enough to bound the size of /tmp and to forbid further sandboxes inside. */
  bounded: boolean
  /** And to take the workspace as an open folder, on descriptor 4: a path could be swapped for a link in the last moment. */
  pinned: boolean
}

/** What a program may see and do. Paths are real ones. */
export interface Confinement {
  root: string
  hidden: readonly string[]
  allowNetwork: boolean
}

/** Where programs are looked for, in the sandbox and outside. */
export const PROGRAM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** The environment of every command; nothing of the server's own gets in. */
export function cleanEnvironment(home: string): Record<string, string> {
  return { PATH: PROGRAM_PATH, HOME: home, LANG: 'C.UTF-8', TERM: 'dumb' }
}

/** Where bubblewrap finds the open workspace. */
const ROOT_DESCRIPTOR = 4

const PROBE_MS = 10_000
const TMP_BYTES = 1024 * 1024 * 1024
const LINKED_FOLDERS = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']
/** Not all of /etc/ssl: its private keys could be read by a server that runs as root. */
const ETC = [
  'alternatives',
  'ca-certificates',
  'group',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'localtime',
  'mime.types',
  'nsswitch.conf',
  'passwd',
  'pki/ca-trust',
  'pki/tls/certs',
  'protocols',
  'services',
  'ssl/certs',
  'ssl/openssl.cnf',
]
const ETC_NETWORK = ['gai.conf', 'host.conf', 'hosts', 'resolv.conf']

/** Tries once, with the flags that commands get, whether bubblewrap works here. Older ones lack some; those are left out. */
export async function probeSandbox(program = 'bwrap'): Promise<Sandbox> {
  const system = await systemFolders()
  const folder = await open('/tmp')
  let reason = ''
  try {
    for (const has of [
      { bounded: true, pinned: true },
      { bounded: true, pinned: false },
      { bounded: false, pinned: false },
    ]) {
      const sandbox = { works: true as const, system, ...has }
      const args = sandboxArguments(sandbox, { root: '/tmp', hidden: [], allowNetwork: false })
      const problem = await tryOut(program, [...args, '--', '/bin/sh', '-c', ':'], folder.fd)
      if (problem === null) return sandbox
      reason = problem
    }
  } finally {
    await folder.close()
  }
  return { works: false, reason }
}

/** The flags for one command, up to the `--` before it. */
export function sandboxArguments({ system, bounded, pinned }: WorkingSandbox, confinement: Confinement): string[] {
  const { root, hidden, allowNetwork } = confinement
  const home = homeFor(root)
  const size = bounded ? ['--size', String(TMP_BYTES)] : []
  const etc = [...ETC, ...(allowNetwork ? ETC_NETWORK : [])].map((name) => `/etc/${name}`)
  return [
    ...['--unshare-all', '--unshare-user', ...(allowNetwork ? ['--share-net'] : [])],
    ...(bounded ? ['--disable-userns'] : []),
    ...['--cap-drop', 'ALL', '--die-with-parent', '--new-session', '--as-pid-1', '--hostname', 'sandbox'],
    ...['--ro-bind', '/usr', '/usr', ...system],
    ...etc.flatMap((path) => ['--ro-bind-try', path, path]),
    // Root in the sandbox is the machine's root to /proc/sys, capabilities or not: core_pattern would be a way out.
    ...['--proc', '/proc', '--ro-bind', '/proc/sys', '/proc/sys', '--dev', '/dev'],
    ...[...size, '--tmpfs', '/tmp', ...size, '--tmpfs', home],
    ...(pinned ? ['--bind-fd', String(ROOT_DESCRIPTOR), root] : ['--bind', root, root]),
    ...covered(root, hidden),
    ...['--remount-ro', '/', '--chdir', root, '--clearenv'],
    ...Object.entries(cleanEnvironment(home)).flatMap(([name, value]) => ['--setenv', name, value]),
  ]
}

/** Never in the workspace, where it would be the user's own. */
function homeFor(root: string): string {
  return isInside(root, '/home/agent') ? '/run/agent' : '/home/agent'
}

/**
 * Covers what is hidden. The folders above it are mounted onto themselves: what is a mount cannot be renamed, and a renamed
 * one would show, under its new name, what is hidden in it.
 */
function covered(root: string, hidden: readonly string[]): string[] {
  const visible = hidden
    .filter((path) => isInside(root, path) || isInside('/usr', path))
    .filter((path) => !hidden.some((other) => other !== path && isInside(other, path)))
    .flatMap((path) => {
      // What is not there cannot be covered, and need not be.
      const found = lstatSync(path, { throwIfNoEntry: false })
      return found === undefined ? [] : [{ path, isFolder: found.isDirectory() }]
    })
  const above = new Set(visible.flatMap(({ path }) => (isInside(root, path) ? foldersBetween(root, path) : [])))
  return [
    ...[...above].sort().flatMap((path) => ['--bind', path, path]),
    ...visible.flatMap(({ path, isFolder }) =>
      isFolder ? ['--tmpfs', path, '--remount-ro', path] : ['--ro-bind', '/dev/null', path],
    ),
  ]
}

function foldersBetween(root: string, path: string): string[] {
  const parent = dirname(path)
  return parent === root || !isInside(root, parent) ? [] : [...foldersBetween(root, parent), parent]
}

/** Usually links into /usr, and folders of their own on older systems. */
async function systemFolders(): Promise<string[]> {
  const found = await Promise.all(
    LINKED_FOLDERS.map(async (path) => {
      const what = await lstat(path).catch(() => null)
      if (what?.isSymbolicLink()) return ['--symlink', await readlink(path), path]
      return what?.isDirectory() ? ['--ro-bind', path, path] : []
    }),
  )
  return found.flat()
}

/** null when it went well. */
async function tryOut(program: string, args: string[], folder: number): Promise<string | null> {
  const stdio = ['ignore', 'ignore', 'pipe', 'ignore', folder] satisfies StdioOptions
  const child = spawn(program, args, { env: { PATH: PROGRAM_PATH }, stdio })
  let said = ''
  child.stderr?.on('data', (chunk) => {
    if (said.length < 1_000) said += String(chunk)
  })
  const limit = new AbortController()
  const ended = once(child, 'exit').then(
    ([code]) => (code === 0 ? null : said.trim().split('\n')[0] || `it ended with ${String(code)}`),
    (error: unknown) =>
      errorText(error).includes('ENOENT') ? 'bubblewrap (bwrap) is not installed' : errorText(error),
  )
  const problem = await Promise.race([ended, sleep(PROBE_MS, limit.signal).then(() => 'it does not end')])
  limit.abort()
  child.kill('SIGKILL')
  return problem
}
