// Builds dist/ from src/, and the pages in dist/web/ from web/. Quick (some seconds), so it always starts from nothing:
// no stale file can survive. The types of the pages are the business of `npm run check:types`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
rmSync(`${root}dist`, { recursive: true, force: true })
const tsc = [`${root}node_modules/typescript-7/bin/tsc`, '-p', `${root}tsconfig.build.json`]
const vite = [`${root}node_modules/vite/bin/vite.js`, 'build', '--config', `${root}web/vite.config.ts`]
const codes = await Promise.all(
  [tsc, vite].map(async (args) => {
    const [code] = await once(spawn(process.execPath, args, { stdio: 'inherit' }), 'close')
    return code
  }),
)
if (codes.some((code) => code !== 0)) process.exit(1)
chmodSync(`${root}dist/cli.js`, 0o755)
