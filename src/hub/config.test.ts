import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { HUB_SETTINGS, parseHubConfig } from './config.ts'

type Name = keyof typeof HUB_SETTINGS

/** A text for every setting that can be read and is not its default. */
const SAMPLES: Record<Name, string> = {
  addr: '0.0.0.0:9000',
  dataDir: '/var/lib/hub',
  databaseUrl: 'postgres://hub:secret@db.example/hub',
  nodeUrl: 'http://10.0.0.7:8765',
  leaseMs: '5000',
  upstreamUrl: 'https://bots.example',
  upstreamToken: 'bot:secret',
  upstreamHosts: 'szs.example',
  credentialsKeyFile: '/etc/hub/key',
  forgetLogins: 'true',
  cdnUrl: 'https://cdn.example/c2c',
  mediaRelay: 'true',
  publicUrl: 'https://hub.example',
  simAddr: '127.0.0.1:9001',
  pollHoldMs: '1000',
  pacingMs: '5',
  sendsPerContext: '5',
  replyWindowMs: '1000',
  accountSends: '6',
  accountWindowMs: '60000',
  commandPrefix: '!',
  requestsPerSecond: '7',
  maxPolls: '3',
  allowedHosts: 'hub.example, Other.example',
  insecure: 'true',
  logLevel: 'debug',
  adminToken: 'admin-secret',
  credentialsKey: 'ab'.repeat(32),
  metricsToken: 'metrics-secret',
}

const names = Object.keys(SAMPLES).filter((name): name is Name => name in HUB_SETTINGS)
const environment = Object.fromEntries(names.map((name) => [HUB_SETTINGS[name].env, SAMPLES[name]]))
const flagged = names.filter((name) => 'flag' in HUB_SETTINGS[name])

verifies('config:flags:defaults', () => {
  const { settings, problems } = parseHubConfig({}, {})
  expect(problems).toEqual([])
  expect(settings).toEqual({
    addr: { host: '127.0.0.1', port: 8765 },
    dataDir: '.switchboard',
    databaseUrl: null,
    nodeUrl: null,
    leaseMs: 15_000,
    upstreamUrl: null,
    upstreamToken: null,
    upstreamHosts: [],
    credentialsKeyFile: null,
    forgetLogins: false,
    cdnUrl: null,
    mediaRelay: false,
    publicUrl: null,
    simAddr: null,
    pollHoldMs: 30_000,
    pacingMs: null,
    sendsPerContext: 10,
    replyWindowMs: 86_400_000,
    accountSends: 0,
    accountWindowMs: 300_000,
    commandPrefix: '/',
    requestsPerSecond: 1_000,
    maxPolls: 20_000,
    allowedHosts: [],
    insecure: false,
    logLevel: 'info',
    adminToken: null,
    credentialsKey: null,
    metricsToken: null,
  })
})

verifies('config:flags:environment', () => {
  expect(names).toHaveLength(Object.keys(HUB_SETTINGS).length)
  const { settings: defaults } = parseHubConfig({}, {})
  const { settings: fromEnvironment, problems } = parseHubConfig({}, environment)
  expect(problems).toEqual([])
  for (const name of names) expect(fromEnvironment[name], name).not.toEqual(defaults[name])
  const { settings: fromFlags } = parseHubConfig(Object.fromEntries(flagged.map((name) => [name, SAMPLES[name]])), {})
  for (const name of flagged) expect(fromFlags[name], name).toEqual(fromEnvironment[name])
})

test('a setting of the hub is called RELAY_… in the environment, and like its flag', () => {
  for (const name of flagged) {
    const setting = HUB_SETTINGS[name]
    const flag = 'flag' in setting ? setting.flag : ''
    expect(setting.env).toBe(`RELAY_${flag.slice(2).replaceAll('-', '_').toUpperCase()}`)
  }
})

verifies(
  ['config:flags:win', 'config:flags:addr', 'config:flags:data-dir', 'config:flags:poll-hold', 'config:flags:upstream'],
  'a flag counts before the environment',
  () => {
    const flags = {
      addr: '[::1]:1',
      dataDir: 'here',
      pollHoldMs: '20',
      upstreamUrl: 'http://other.example/',
      upstreamToken: 'other',
    }
    const { settings, problems } = parseHubConfig(flags, environment)
    expect(problems).toEqual([])
    expect(settings).toMatchObject({
      addr: { host: '::1', port: 1 },
      dataDir: 'here',
      pollHoldMs: 20,
      upstreamUrl: 'http://other.example',
      upstreamToken: 'other',
      // What no flag speaks of stays as the environment has it.
      maxPolls: 3,
    })
  },
)

verifies('config:secrets:environment-only', () => {
  expect(names.filter((name) => !flagged.includes(name))).toEqual(['adminToken', 'credentialsKey', 'metricsToken'])
  const { settings } = parseHubConfig({ adminToken: 'flag', metricsToken: 'flag' }, {})
  expect(settings).toMatchObject({ adminToken: null, metricsToken: null })
})

verifies('config:errors:all-at-once', () => {
  const wrong = {
    addr: 'nowhere',
    dataDir: ' ',
    upstreamUrl: 'ftp://host',
    simAddr: '1:2:3',
    pollHoldMs: '9',
    pacingMs: '-1',
    commandPrefix: 'a',
    requestsPerSecond: 'many',
    maxPolls: '0',
    allowedHosts: 'hub.example:8765',
    insecure: 'maybe',
    logLevel: 'loud',
  }
  const { problems } = parseHubConfig(wrong, { RELAY_ADMIN_TOKEN: '', RELAY_METRICS_TOKEN: 'two words' })
  const sources = problems.map((problem) => problem.split(' ')[0])
  const flags = Object.keys(wrong).map((name) => flagOf(name))
  expect(sources).toEqual([...flags, 'RELAY_ADMIN_TOKEN', 'RELAY_METRICS_TOKEN'])
  for (const problem of problems) expect(problem).toMatch(/^\S+ .{10,}/)
  const fromEnvironment = parseHubConfig({}, { RELAY_ADDR: 'nowhere', RELAY_POLL_HOLD_MS: 'x' })
  expect(fromEnvironment.problems.map((problem) => problem.split(' ')[0])).toEqual(['RELAY_ADDR', 'RELAY_POLL_HOLD_MS'])
})

describe('an upstream', () => {
  test('may be an address alone: a person logs in there', () => {
    expect(parseHubConfig({ upstreamUrl: 'https://host' }, {}).problems).toEqual([])
  })

  test('is not a token alone', () => {
    const { problems } = parseHubConfig({ upstreamToken: 'bot:secret' }, {})
    expect(problems).toEqual([expect.stringMatching(/--upstream-url .* is missing/)])
    expect(problems[0]).not.toContain('secret')
  })

  test('one half may come from a flag and the other from the environment', () => {
    const { settings, problems } = parseHubConfig({ upstreamUrl: 'https://host' }, { RELAY_UPSTREAM_TOKEN: 'token' })
    expect(problems).toEqual([])
    expect(settings).toMatchObject({ upstreamUrl: 'https://host', upstreamToken: 'token' })
  })
})

test.each(['/', '!', '#!', '。'])('%j can start a command', (prefix) => {
  expect(parseHubConfig({ commandPrefix: prefix }, {}).problems).toEqual([])
})

test.each(['', ' ', 'a', '1', '@', '/ ', '/x', '列', '//////////'])('%j cannot start a command', (prefix) => {
  expect(parseHubConfig({ commandPrefix: prefix }, {}).problems[0]).toMatch(/^--command-prefix must be 1 to 8 signs/)
})

test('allowed hosts are names, in any case, without port or path', () => {
  expect(parseHubConfig({ allowedHosts: 'Hub.Example,, b-2.local ,' }, {}).settings.allowedHosts).toEqual([
    'hub.example',
    'b-2.local',
  ])
  for (const text of ['hub.example:80', 'http://hub.example', 'hub example', '*', 'a,b/c'])
    expect(parseHubConfig({ allowedHosts: text }, {}).problems[0], text).toMatch(/^--allowed-host .*names/)
})

function flagOf(name: string): string {
  const setting = Object.entries(HUB_SETTINGS).find(([key]) => key === name)?.[1]
  return setting !== undefined && 'flag' in setting ? setting.flag : ''
}

verifies('nodes:config:upstream-needed', () => {
  const { problems } = parseHubConfig({ databaseUrl: 'postgres://localhost/hub' }, {})
  expect(problems).toEqual([
    '--upstream-url (or RELAY_UPSTREAM_URL) is missing; hubs that share a database share a service too',
  ])
})
