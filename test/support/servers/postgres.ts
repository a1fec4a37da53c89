import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import postgres from 'postgres'
import { freePort } from '../free-port.ts'
import { findProgram, type Running, run, type TestServer, untilUp } from './program.ts'

const UP_WITHIN_MS = 30_000
const RETRY_MS = 50
const DEBIAN = '/usr/lib/postgresql'

/**
 * A Postgres of one's own; `createDatabase` gives each test a schema of its own, which costs far less than a
 * database. End it with `remove`.
 */
export interface TestPostgres extends TestServer {
  createDatabase(): Promise<string>
  remove(): Promise<void>
}

/** Starts one in a temporary folder, as an ordinary user; with real commits unless what it holds need not outlive it. */
export async function startPostgres({ fsync = true } = {}): Promise<TestPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-postgres-'))
  const port = await freePort()
  const user = ordinaryUser()
  if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const initdb = spawnSync(program('initdb'), ['-D', data, '-U', 'test', '-A', 'trust', '--no-sync', '-E', 'UTF8'], {
    ...user,
    encoding: 'utf8',
  })
  if (initdb.status !== 0) throw new Error(`initdb: ${initdb.stderr} ${initdb.error ?? ''}`)
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=200',
    `fsync=${fsync ? 'on' : 'off'}`,
  ]
  const args = ['-D', data, '-p', `${port}`, ...settings.flatMap((setting) => ['-c', setting])]
  const url = `postgres://test@127.0.0.1:${port}`
  let running: Running | undefined

  const start = async () => {
    const deadline = Date.now() + UP_WITHIN_MS
    for (;;) {
      running = run(program('postgres'), args, user)
      try {
        return await untilUp(() => once(`${url}/postgres`, 'select 1'), running, UP_WITHIN_MS)
      } catch (error) {
        // Children of one that was killed hold on to its memory for a moment; until they have gone it does not start.
        const isBusy = /shared memory block|lock file/.test(running.output())
        if (!isBusy || Date.now() > deadline) throw error
        await pause(RETRY_MS)
      }
    }
  }
  // SIGQUIT ends the server and its children at once, without a checkpoint; after SIGKILL the children end by themselves.
  const stop = async (signal: NodeJS.Signals = 'SIGQUIT') => running?.stop(signal)
  let schemas = 0
  await start()
  return {
    url: `${url}/postgres`,
    port,
    pid: () => running?.child.pid ?? 0,
    start,
    stop,
    createDatabase: async () => {
      schemas += 1
      const name = `test_${schemas}`
      await once(`${url}/postgres`, `create schema ${name}`)
      return `${url}/postgres?search_path=${name}`
    },
    remove: async () => {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** One statement on a connection of its own. */
async function once(url: string, statement: string): Promise<void> {
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => {} })
  try {
    await sql.unsafe(statement)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** Where Debian keeps the programs, newest version first; else the PATH. */
function program(name: string): string {
  const own = process.env.TEST_POSTGRES_BIN
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : []
  return findProgram(name, own ? [own] : versions.map((version) => join(DEBIAN, version, 'bin')))
}

/** Postgres refuses to run as root. */
function ordinaryUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const id = (flag: string) => Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout)
  return { uid: id('-u'), gid: id('-g') }
}
