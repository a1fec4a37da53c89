// Runs before the tests: looks for what they need from the machine, installs it where that can be done, and says what to
// do where it cannot. With CI=true nothing may be missing.
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const POSTGRES = '/usr/lib/postgresql'

/**
 * What the tests need: `commands` are tried in turn on the PATH (and in `folders`), `variable` names one's own instead
 * (`elsewhere`: it is a server, not a program), `debian` are the packages that have it, and `without` is what is not run
 * without it.
 */
const NEEDS = [
  {
    name: 'Chromium',
    variable: 'TEST_CHROMIUM',
    commands: ['chromium', 'chromium-browser', 'google-chrome'],
    debian: 'chromium',
    without: 'the tests of the pages',
  },
  {
    name: 'bubblewrap',
    variable: 'TEST_BUBBLEWRAP',
    commands: ['bwrap'],
    debian: 'bubblewrap',
    without: 'the tests of the sandbox',
  },
  {
    name: 'Redis',
    variable: 'TEST_REDIS_SERVER',
    commands: ['redis-server', 'valkey-server'],
    debian: 'redis-server',
    without: 'the tests of several agent nodes',
  },
  {
    name: 'Postgres',
    variable: 'TEST_POSTGRES_BIN',
    commands: ['initdb'],
    folders: () => (existsSync(POSTGRES) ? readdirSync(POSTGRES).map((version) => join(POSTGRES, version, 'bin')) : []),
    elsewhere: true,
    debian: 'postgresql',
    without: 'the tests of several hub nodes',
  },
  {
    name: 'an S3 server (Ceph)',
    variable: 'TEST_S3_URL',
    commands: ['radosgw'],
    elsewhere: true,
    debian: 'ceph-mon ceph-osd ceph-mgr radosgw ceph-common',
    without: 'the tests of shared object storage',
  },
]

const APT_LIMIT_MS = 10 * 60_000

let missing = NEEDS.filter((need) => find(need) === undefined)
// Who names a program of their own does not want another.
const wanted = missing.filter(({ variable }) => !process.env[variable])
if (wanted.length > 0 && canInstall()) {
  install(wanted.flatMap(({ debian }) => debian.split(' ')))
  missing = NEEDS.filter((need) => find(need) === undefined)
}
for (const { name, variable, commands, debian, without } of missing) {
  const given = process.env[variable]
  console.error(`test set-up: ${name} is missing, so ${without} cannot run.`)
  if (given) console.error(`  ${variable} is set to ${given}, which is not a program.`)
  console.error(`  Install it (Debian, Ubuntu: apt-get install ${debian}) so that one of ${commands.join(', ')} is on`)
  console.error(`  the PATH, or set ${variable} to the program.`)
}
if (missing.length > 0 && process.env.CI === 'true') {
  console.error('test set-up: with CI=true nothing may be missing.')
  process.exit(1)
}

/** The program that serves a need, or undefined. One that was named is never replaced by another. */
function find({ variable, commands, folders = () => [], elsewhere = false }) {
  const given = process.env[variable]
  if (given) return elsewhere || isProgram(given) ? given : undefined
  const places = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...folders()]
  return commands.flatMap((command) => places.map((folder) => join(folder, command))).find(isProgram)
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

function canInstall() {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version') && isProgram('/usr/bin/apt-get')
}

function install(packages) {
  const names = packages.join(' ')
  console.log(`test set-up: installing ${names} with apt-get (needed once on this machine)`)
  const startedAt = Date.now()
  const done = apt('update') && apt('install', '-y', '--no-install-recommends', ...packages)
  const seconds = Math.round((Date.now() - startedAt) / 1000)
  console.log(`test set-up: ${done ? `installed ${names}` : `could not install ${names}`} (${seconds} s)`)
}

function apt(...args) {
  console.log(`test set-up: apt-get ${args.join(' ')}`)
  const { status, stdout, stderr } = spawnSync('/usr/bin/apt-get', ['-q', ...args], {
    encoding: 'utf8',
    timeout: APT_LIMIT_MS,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
  if (status !== 0) console.error(`${stdout}${stderr}`.split('\n').slice(-20).join('\n'))
  return status === 0
}
