import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../free-port.ts'
import { findProgram, type Running, run, type TestServer, untilUp } from './program.ts'

const UP_WITHIN_MS = 20_000

/** A Redis of one's own that writes every command to disk, so that it can be killed and started again. End it with `remove`. */
export async function startRedis(options: string[] = []): Promise<TestServer & { remove(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-redis-'))
  const port = await freePort()
  const program = process.env.TEST_REDIS_SERVER ?? findProgram('redis-server')
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'yes', '--dir', folder]
  let running: Running | undefined

  const start = async () => {
    running = run(program, [...args, '--appendfsync', 'always', ...options])
    await untilUp(() => ping(port), running, UP_WITHIN_MS)
  }
  const stop = async (signal: NodeJS.Signals = 'SIGKILL') => running?.stop(signal)
  await start()
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid: () => running?.child.pid ?? 0,
    start,
    stop,
    remove: async () => {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Resolves once it answers PING (it does not while it loads its data). */
function ping(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    socket.setTimeout(2000, () => socket.destroy(new Error('no answer')))
    socket.once('error', reject)
    socket.once('data', (data) => {
      socket.destroy()
      if (String(data).startsWith('+PONG')) resolve()
      else reject(new Error(String(data)))
    })
  })
}
