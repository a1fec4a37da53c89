import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

/** `switchboard agent` as a process of its own on a free port; its model says what the script says, or is the demo model. */
export async function startExampleAgent(
  script?: object,
): Promise<{ url: string; workspace: string; stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-example-'))
  const workspace = join(folder, 'work')
  await mkdir(workspace)
  const file = join(folder, 'script.json')
  if (script !== undefined) await writeFile(file, JSON.stringify(script))
  const model = script === undefined ? 'demo' : `scripted:${file}`
  const args = ['agent', '--addr', '127.0.0.1:0', '--workspace', workspace, '--model', model, '--log-level', 'error']
  const child = spawn(process.execPath, [CLI, ...args], {
    env: { ...process.env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  let banner = ''
  for await (const chunk of child.stdout) {
    banner += String(chunk)
    if (banner.includes('Try it')) break
  }
  const url = /api +(http:\S+)/.exec(banner)?.[1]
  if (url === undefined) throw new Error(`the agent server did not start: ${banner}`)
  return {
    url,
    workspace,
    async stop() {
      child.kill('SIGTERM')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}
