// Writes what the package is made of at run time to sbom.json (CycloneDX), or to the file that is named:
// npm run sbom -- <file>. Reads package-lock.json alone.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const [file = 'sbom.json'] = process.argv.slice(2)
const args = [
  'sbom',
  '--sbom-format',
  'cyclonedx',
  '--sbom-type',
  'application',
  '--omit',
  'dev',
  '--package-lock-only',
]
const { status, stdout, stderr } = spawnSync('npm', args, {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
})
if (status !== 0) {
  console.error(stderr || stdout)
  process.exit(1)
}
writeFileSync(file, stdout)
console.log(`${file}: ${JSON.parse(stdout).components.length} packages`)
