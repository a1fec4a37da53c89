import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

/** `switchboard hub` as a process of its own on free ports, with throw-away data. */
export async function startExampleHub(): Promise<{ url: string; simUrl: string; stop(): Promise<void> }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'switchboard-example-'))
  const args = ['hub', '--addr', '127.0.0.1:0', '--data-dir', dataDir, '--log-level', 'error']
  const child = spawn(process.execPath, [CLI, ...args], {
    env: { ...process.env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  let banner = ''
  for await (const chunk of child.stdout) {
    banner += String(chunk)
    if (banner.includes('/sim/conversation')) break
  }
  const [url, simUrl] = [/panel +(http:\S+)\/hub\/ui/, /runs at (http:\S+)/].map(
    (pattern) => pattern.exec(banner)?.[1] ?? '',
  )
  if (!url || !simUrl) throw new Error(`the hub did not start: ${banner}`)
  return {
    url,
    simUrl,
    async stop() {
      child.kill('SIGTERM')
      await ended
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
