// Builds dist/ from src/. Quick (about a second), so it always starts from nothing: no stale file can survive.
import { spawnSync } from 'node:child_process'
import { chmodSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
rmSync(`${root}dist`, { recursive: true, force: true })
const tsc = spawnSync(
  process.execPath,
  [`${root}node_modules/typescript-7/bin/tsc`, '-p', `${root}tsconfig.build.json`],
  {
    stdio: 'inherit',
  },
)
if (tsc.status !== 0) process.exit(tsc.status ?? 1)
chmodSync(`${root}dist/cli.js`, 0o755)
