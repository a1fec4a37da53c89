import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../free-port.ts'
import { findProgram } from './program.ts'

/** An S3 server, where its bucket goes and who may write there. */
export interface TestS3 {
  /** `http://host:port`; path-style addressing. */
  endpoint: string
  accessKeyId: string
  secretAccessKey: string
  remove(): Promise<void>
}

const STEP_MS = 60_000

/**
 * Ceph's object gateway on a cluster of one node that lives in memory: a real S3 server from Debian's packages, up in about
 * fifteen seconds. `TEST_S3_URL` (with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY) names one's own instead.
 */
export async function startS3(): Promise<TestS3> {
  const own = process.env.TEST_S3_URL
  if (own) {
    const { AWS_ACCESS_KEY_ID = '', AWS_SECRET_ACCESS_KEY = '' } = process.env
    return {
      endpoint: own,
      accessKeyId: AWS_ACCESS_KEY_ID,
      secretAccessKey: AWS_SECRET_ACCESS_KEY,
      remove: async () => {},
    }
  }
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-ceph-'))
  try {
    return await startCeph(folder)
  } catch (error) {
    await removeCeph(folder)
    throw error
  }
}

async function startCeph(folder: string): Promise<TestS3> {
  const [port, monPort, oldMonPort] = [await freePort(), await freePort(), await freePort()]
  const cluster = crypto.randomUUID()
  for (const part of ['mon', 'osd', 'mgr', 'out']) mkdirSync(join(folder, part))
  const monAddress = `[v2:127.0.0.1:${monPort},v1:127.0.0.1:${oldMonPort}]`
  const conf = join(folder, 'ceph.conf')
  writeFileSync(conf, configuration({ folder, cluster, monAddress, port }))
  const step = (program: string, ...args: string[]) => runStep(folder, program, args)
  const ceph = (program: string, ...args: string[]) => step(program, '-c', conf, ...args)

  const keyring = join(folder, 'keyring')
  makeKeyring(keyring, step)
  const map = join(folder, 'monmap')
  step('monmaptool', '--create', '--clobber', '--addv', 'a', monAddress, '--fsid', cluster, map)
  ceph('ceph-mon', '--mkfs', '-i', 'a', '--monmap', map, '--keyring', keyring)
  ceph('ceph-mon', '-i', 'a')
  await until('the monitor answers', () => attempt(() => ceph('ceph', '--connect-timeout', '5', '-s')))
  ceph('ceph-mgr', '-i', 'x')
  const disk = crypto.randomUUID()
  ceph('ceph', 'osd', 'new', disk)
  ceph('ceph-osd', '-i', '0', '--mkfs', '--osd-uuid', disk)
  ceph('ceph-osd', '-i', '0')
  await until('the manager is active', () => ceph('ceph', '-s').includes('mgr: x(active'))
  ceph('radosgw', '-n', 'client.rgw')
  const keys = { accessKeyId: 'TESTACCESS', secretAccessKey: crypto.randomUUID() }
  const given = ['--access-key', keys.accessKeyId, '--secret', keys.secretAccessKey]
  ceph('radosgw-admin', 'user', 'create', '--uid=test', '--display-name=test', ...given)
  const endpoint = `http://127.0.0.1:${port}`
  await until('the gateway answers', () =>
    fetch(endpoint).then(
      () => true,
      () => false,
    ),
  )
  return { endpoint, ...keys, remove: () => removeCeph(folder) }
}

type Step = (program: string, ...args: string[]) => string

function makeKeyring(path: string, step: Step): void {
  const all = ['--cap', 'mon', 'allow *', '--cap', 'osd', 'allow *', '--cap', 'mgr', 'allow *']
  step('ceph-authtool', '--create-keyring', path, '--gen-key', '-n', 'mon.', '--cap', 'mon', 'allow *')
  step('ceph-authtool', path, '--gen-key', '-n', 'client.admin', ...all)
  step('ceph-authtool', path, '--gen-key', '-n', 'client.rgw', ...all)
  const manager = ['--cap', 'mon', 'allow profile mgr', '--cap', 'osd', 'allow *', '--cap', 'mds', 'allow *']
  step('ceph-authtool', path, '--gen-key', '-n', 'mgr.x', ...manager)
  const disk = ['--cap', 'mon', 'allow profile osd', '--cap', 'mgr', 'allow profile osd', '--cap', 'osd', 'allow *']
  step('ceph-authtool', path, '--gen-key', '-n', 'osd.0', ...disk)
}

function configuration(given: { folder: string; cluster: string; monAddress: string; port: number }): string {
  const { folder, cluster, monAddress, port } = given
  return `[global]
fsid = ${cluster}
mon host = ${monAddress}
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
osd crush chooseleaf type = 0
mon max pg per osd = 1000
ms bind ipv6 = false
run dir = ${folder}/out
admin socket = ${folder}/out/$name.asok
log file = ${folder}/out/$name.log
pid file = ${folder}/out/$name.pid
keyring = ${folder}/keyring
[mon]
mon data = ${folder}/mon
mon cluster log file = ${folder}/out/cluster.log
[mgr]
mgr data = ${folder}/mgr
mgr initial modules =
[osd]
osd data = ${folder}/osd
osd objectstore = memstore
memstore device bytes = 4294967296
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:${port}
rgw thread pool size = 32
rgw crypt require ssl = false
debug rgw = 1
`
}

/** Runs one program to its end; the daemons put themselves into the background. Returns what it printed. */
function runStep(folder: string, program: string, args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(findProgram(program), args, {
    encoding: 'utf8',
    timeout: STEP_MS,
    env: { ...process.env, CEPH_CONF: join(folder, 'ceph.conf') },
  })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr} ${error ?? ''}`)
  return stdout
}

function attempt(action: () => unknown): boolean {
  try {
    action()
    return true
  } catch {
    return false
  }
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + STEP_MS
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`Ceph: it took too long until ${what}.`)
    await pause(200)
  }
}

/** Ends the daemons by the ids they wrote down. */
async function removeCeph(folder: string): Promise<void> {
  const out = join(folder, 'out')
  const files = attempt(() => readdirSync(out)) ? readdirSync(out).filter((name) => name.endsWith('.pid')) : []
  for (const file of files) {
    const pid = Number(readFileSync(join(out, file), 'utf8'))
    if (pid > 1) attempt(() => process.kill(pid, 'SIGKILL'))
  }
  await pause(100)
  rmSync(folder, { recursive: true, force: true })
}
