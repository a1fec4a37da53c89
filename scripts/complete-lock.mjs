// Adds to package-lock.json the optional platform packages that a partial registry mirror left out, so that `npm ci`
// finds the lock complete on every platform. Run it after every change of dependencies: node scripts/complete-lock.mjs
import { readFileSync, writeFileSync } from 'node:fs'

const path = new URL('../package-lock.json', import.meta.url)
const lock = JSON.parse(readFileSync(path, 'utf8'))
const SYSTEMS = ['android', 'darwin', 'freebsd', 'netbsd', 'openbsd', 'openharmony', 'win32', 'linux', 'sunos', 'aix']
const CPUS = ['arm64', 'x64', 'ia32', 'loong64', 'ppc64', 'riscv64', 's390x', 'mips64el', 'arm', 'wasm32']

let added = 0
for (const [key, entry] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(key === '' ? {} : (entry.optionalDependencies ?? {}))) {
    const place = `node_modules/${name}`
    if (place in lock.packages || `${key}/${place}` in lock.packages || !/^\d/.test(version)) continue
    lock.packages[place] = platformEntry(name, version, entry.dev === true)
    added += 1
  }
}
const sorted = Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1))
writeFileSync(path, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`)
console.log(`${added} optional platform packages added`)

function platformEntry(name, version, dev) {
  const words = (name.split('/').at(-1) ?? '').split('-')
  const system = SYSTEMS.find((one) => words.includes(one))
  const cpu = CPUS.find((one) => words.includes(one))
  const libc =
    system !== 'linux'
      ? undefined
      : words.some((word) => word.startsWith('musl'))
        ? 'musl'
        : words.some((word) => word.startsWith('gnu'))
          ? 'glibc'
          : undefined
  return {
    version,
    ...(cpu ? { cpu: [cpu] } : {}),
    ...(dev ? { dev: true } : {}),
    ...(libc ? { libc: [libc] } : {}),
    optional: true,
    ...(system ? { os: [system] } : {}),
  }
}
