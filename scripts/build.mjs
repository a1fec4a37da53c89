// Builds dist/ from src/, and the pages in dist/web/ from web/. Quick (some seconds), so it always starts from nothing:
// no stale file can survive. The types of the pages are the business of `npm run check:types`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

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
await bundleTypebox()
chmodSync(`${root}dist/cli.js`, 0o755)

/** typebox is some three hundred files; opening them took half of the time that a program needed to start. */
async function bundleTypebox() {
  const bundle = join(root, 'dist/vendor/typebox.js')
  const licence = readFileSync(join(root, 'node_modules/typebox/license'), 'utf8').trim()
  await build({
    configFile: false,
    root,
    logLevel: 'warn',
    publicDir: false,
    ssr: { noExternal: true },
    build: {
      ssr: 'scripts/typebox-entry.mjs',
      target: 'node20',
      outDir: dirname(bundle),
      minify: false,
      rollupOptions: { output: { entryFileNames: 'typebox.js', banner: `/*!\n${licence}\n*/` } },
    },
  })
  const files = readdirSync(join(root, 'dist'), { recursive: true, withFileTypes: true })
  for (const { name, parentPath } of files.filter((file) => file.isFile() && file.name.endsWith('.js'))) {
    const path = join(parentPath, name)
    if (path.startsWith(join(root, 'dist/web')) || path === bundle) continue
    const source = readFileSync(path, 'utf8')
    const here = relative(parentPath, bundle)
    const bundled = source.replace(
      / from 'typebox(\/compile)?';/g,
      ` from '${here.startsWith('.') ? here : `./${here}`}';`,
    )
    if (bundled !== source) writeFileSync(path, bundled)
  }
}
