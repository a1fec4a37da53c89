#!/usr/bin/env node
import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { Command } from 'commander'
import pc from 'picocolors'
import { AGENT_SETTINGS, type AgentSettings, parseAgentConfig } from './agent/config.ts'
import { hubAdmin } from './client/hub-client.ts'
import { HUB_SETTINGS, type HubSettings, parseHubConfig } from './hub/config.ts'
import { AppError, errorText } from './kit/errors.ts'
import { jsonLog } from './kit/log.ts'
import { readHttpUrl, readSecret, readSettings, type Setting, type Settings } from './kit/settings.ts'
import { parseSimConfig, SIM_SETTINGS } from './sim/config.ts'
import type { RunningSim } from './sim/main.ts'

const ASK_SETTINGS = {
  hub: {
    flag: '--hub',
    placeholder: '<url>',
    env: 'RELAY_URL',
    help: 'the hub to ask',
    fallback: 'http://127.0.0.1:8765',
    read: readHttpUrl,
  },
  label: {
    flag: '--label',
    placeholder: '<text>',
    help: 'a description for people (register)',
    fallback: null,
    fallbackText: 'the name',
    read: (text: string) => text,
  } satisfies Setting<string | null>,
  json: { flag: '--json', help: 'print JSON', fallback: false, read: () => true },
  adminToken: {
    env: 'RELAY_ADMIN_TOKEN',
    help: "the hub's admin token, where it has one",
    fallback: null,
    read: readSecret,
  } satisfies Setting<string | null>,
}

/** What was on the command line and is no option; told together with all else that is wrong. */
const unexpected: string[] = []

type Flags = Record<string, string | boolean | undefined>

const USAGE_ERROR = 2
const VERSION = '0.1.0'

const program = new Command('switchboard')
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : USAGE_ERROR))
  .description('One messaging bot account, many AI agents.')
  .helpCommand('help [command]', 'show how a command is used')
  .showHelpAfterError('(switchboard --help shows what there is)')
  .addHelpText(
    'after',
    `
Try it, with no account and nothing to configure:
  $ switchboard hub                        the hub, with a simulated messaging service beside it
  $ switchboard register my-agent          in another terminal: get a token for an AI client
  $ curl -X POST http://127.0.0.1:8766/sim/say -d '{"user":"ann","text":"hello"}'
  $ curl -X POST http://127.0.0.1:8765/relay/bot/getupdates -H 'Authorization: Bearer <token>' -d '{}'`,
  )

command('hub', 'run the message relay hub', HUB_SETTINGS, async (flags) => {
  const { settings, problems } = parseHubConfig(flags, process.env)
  complain('hub', problems)
  await runHub(settings)
})

command('sim', 'run a simulated messaging service that speaks the real bot protocol', SIM_SETTINGS, async (flags) => {
  const { settings, problems } = parseSimConfig(flags, process.env)
  complain('sim', problems)
  const { startSim } = await import('./sim/main.ts')
  const sim = await startSim({
    ...settings.addr,
    botToken: settings.botToken ?? newBotToken(),
    holdMs: settings.holdMs,
    log: jsonLog(settings.logLevel),
  })
  banner('sim', [
    ['bot api', `${sim.url}/ilink/bot/…`],
    ['bot token', sim.botToken],
    ['control', `${sim.url}/sim/…  (${sim.url}/ lists the calls)`],
  ])
  console.log(pc.dim(`  A hub for it:  switchboard hub --upstream-url ${sim.url} --upstream-token ${sim.botToken}\n`))
  stopOnSignal(() => sim.stop())
})

command('agent', 'run the agent session server', AGENT_SETTINGS, async (flags) => {
  const { settings, problems } = parseAgentConfig(flags, process.env)
  complain('agent', problems)
  const { startAgent } = await import('./agent/main.ts')
  const log = jsonLog(settings.logLevel)
  const agent = await startAgent(settings, { log, env: process.env, version: VERSION })
  const everywhere = agent.host === '0.0.0.0' || agent.host === '::'
  const at = everywhere ? `http://127.0.0.1:${agent.port}` : agent.url
  banner('agent', [
    ['api', at],
    ['openapi', `${at}/openapi.json`],
    ...(everywhere ? [['listens', `on every address of this machine, port ${agent.port}`] satisfies Line] : []),
    [
      'model',
      agent.model === 'demo'
        ? 'demo (an offline model of a few rules; set a key or --model for a real one)'
        : agent.model,
    ],
    ['workspace', agent.workspace],
    ['shell', agent.shellOff ?? 'in a sandbox'],
    ['access', accessText(settings)],
  ])
  const key = settings.authKeys === null ? '' : ` -H 'X-API-Key: <key>'`
  console.log(pc.dim(`  Try it:  curl -X POST ${at}/run${key} -d '{"goal":"list files"}'\n`))
  stopOnSignal(() => agent.stop())
})

command(
  'register',
  'register an AI client and print its token',
  pick('hub', 'label', 'json', 'adminToken'),
  async (flags, name) => {
    const { values, problems } = readSettings(ASK_SETTINGS, flags, process.env)
    complain('register', problems)
    const admin = hubAdmin({ url: values.hub, adminToken: values.adminToken ?? undefined })
    const client = await admin.register(name ?? '', values.label === null ? {} : { label: values.label })
    if (values.json) return console.log(JSON.stringify(client))
    console.log(`${pc.bold(client.name)} is registered. Its token, shown this once:\n\n  ${pc.green(client.token)}\n`)
    console.log(`Point the client at ${values.hub} (paths /relay/bot/… or /ilink/bot/…) with this token.`)
  },
).argument('<name>', 'what the client is called')

command('clients', 'list the registered clients', pick('hub', 'json', 'adminToken'), async (flags) => {
  const { values, problems } = readSettings(ASK_SETTINGS, flags, process.env)
  complain('clients', problems)
  const list = await hubAdmin({ url: values.hub, adminToken: values.adminToken ?? undefined }).clients()
  if (values.json) return console.log(JSON.stringify(list))
  if (list.total === 0) return console.log('No client is registered yet. "switchboard register <name>" registers one.')
  const rows = [
    ['NAME', 'STATUS', 'WAITING', 'LAST SEEN', 'LABEL'],
    ...list.clients.map((one) => [one.name, one.status, String(one.queue_size), one.last_seen, one.label]),
  ]
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  for (const row of rows)
    console.log(
      row
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  console.log(pc.dim(`${list.online} of ${list.total} online`))
})

// Whoever reads the banner may stop reading; the hub goes on.
process.stdout.on('error', () => {})

await program.parseAsync(process.argv).catch(fail)

async function runHub(settings: HubSettings): Promise<void> {
  // Not at the top: --help and the small commands need none of it.
  const { cursorSource, startHub } = await import('./hub/main.ts')
  const log = jsonLog(settings.logLevel)
  const sim = settings.upstreamUrl === null ? await simBeside(settings) : null
  const url = sim?.url ?? settings.upstreamUrl ?? ''
  const token = sim?.botToken ?? settings.upstreamToken ?? ''
  const source = sim ? 'sim' : cursorSource(url, token)
  const hub = await startHub({ ...settings, upstream: { url, token, source } }, log).catch(async (error: unknown) => {
    await sim?.stop()
    throw error
  })
  const everywhere = hub.host === '0.0.0.0' || hub.host === '::'
  const at = everywhere ? `http://127.0.0.1:${hub.port}` : hub.url
  banner('hub', [
    ['clients', `${at}/relay/bot/…  (the same at /ilink/bot/…)`],
    ['panel', `${at}/hub/ui`],
    ['health', `${at}/health`],
    ['metrics', `${at}/metrics`],
    ...(everywhere ? [['listens', `on every address of this machine, port ${hub.port}`] satisfies Line] : []),
    ['data', resolve(settings.dataDir)],
    ['upstream', sim ? `none configured, so a simulated messaging service runs at ${sim.url}` : url],
    ['admin', adminText(settings)],
  ])
  if (sim) {
    console.log(
      pc.dim(`  Say something as a user:  curl -X POST ${sim.url}/sim/say -d '{"user":"ann","text":"hello"}'`),
    )
    console.log(pc.dim(`  Read the answers:         curl '${sim.url}/sim/conversation?user=ann'\n`))
  }
  stopOnSignal(async () => {
    await hub.stop()
    await sim?.stop()
  })
}

/** The sim on the port after the hub's, or on any free one when that is taken. */
async function simBeside({ addr, simAddr, logLevel }: HubSettings): Promise<RunningSim> {
  const { startSim } = await import('./sim/main.ts')
  const log = jsonLog(logLevel === 'info' ? 'warn' : logLevel)
  const start = (at: { host: string; port: number }) =>
    startSim({ ...at, botToken: newBotToken(), holdMs: SIM_SETTINGS.holdMs.fallback, log })
  if (simAddr !== null) return start(simAddr)
  const host = '127.0.0.1'
  const port = addr.port === 0 || addr.port === 65_535 ? 0 : addr.port + 1
  return start({ host, port }).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'address_in_use') return start({ host, port: 0 })
    throw error
  })
}

function accessText({ authKeys, insecure }: AgentSettings): string {
  if (authKeys !== null) return `needs one of ${authKeys.length} key(s) in X-API-Key`
  if (insecure) return pc.yellow('OPEN TO EVERY CALLER (--insecure)')
  return 'open to this machine only; set --auth-keys to reach it from elsewhere'
}

function adminText({ adminToken, insecure }: HubSettings): string {
  if (adminToken !== null) return 'needs RELAY_ADMIN_TOKEN'
  if (insecure) return pc.yellow('OPEN TO EVERY CALLER (--insecure)')
  return 'open to this machine only; set RELAY_ADMIN_TOKEN to reach it from elsewhere'
}

function command(
  name: string,
  description: string,
  settings: Settings,
  run: (flags: Flags, argument?: string) => Promise<void>,
): Command {
  const added = program.command(name).description(description).allowUnknownOption().allowExcessArguments()
  for (const { flag, placeholder, env, help, fallback, fallbackText } of Object.values(settings)) {
    if (flag === undefined) continue
    const shown = fallbackText ?? (fallback === null || fallback === false ? undefined : String(fallback))
    const notes = [env === undefined ? '' : `env ${env}`, shown === undefined ? '' : `default: ${shown}`].filter(
      (note) => note !== '',
    )
    added.option(
      placeholder === undefined ? flag : `${flag} ${placeholder}`,
      notes.length === 0 ? help : `${help} (${notes.join('; ')})`,
    )
  }
  const environment = Object.values(settings).filter(({ flag }) => flag === undefined)
  if (environment.length > 0) {
    const lines = environment.map(({ env, help }) => `  ${String(env).padEnd(22)} ${help}`)
    added.addHelpText('after', `\nFrom the environment only:\n${lines.join('\n')}`)
  }
  return added.action(async () => {
    const { plain, unknown } = sortArguments(added.args)
    for (const text of [...unknown, ...plain.slice(added.registeredArguments.length)]) {
      const env = environment.find(({ env }) => text === flagFor(env))?.env
      unexpected.push(
        env === undefined
          ? `${text} is not an option or argument of "switchboard ${name}"`
          : `${text} is no option, as flags show in process lists; set ${env} in the environment`,
      )
    }
    await run(byName(settings, added.opts()), plain[0])
  })
}

/** What commander could not place: plain words, and options nobody knows. The value after one may be a secret: it goes. */
function sortArguments(args: string[]): { plain: string[]; unknown: string[] } {
  const plain: string[] = []
  const unknown: string[] = []
  let valueMayFollow = false
  for (const arg of args) {
    const isOption = /^-./.test(arg)
    if (isOption) unknown.push(arg.replace(/=.*/s, ''))
    else if (!valueMayFollow) plain.push(arg)
    valueMayFollow = isOption && !arg.includes('=')
  }
  return { plain, unknown }
}

/** `--admin-token` for RELAY_ADMIN_TOKEN: what somebody might try. */
function flagFor(env: string | undefined): string | undefined {
  return env
    ?.replace(/^[A-Z]+_/, '--')
    .replaceAll('_', '-')
    .toLowerCase()
}

/** Commander names a flag's value after the flag; the settings have names of their own. */
function byName(settings: Settings, options: Flags): Flags {
  const entries = Object.entries(settings).flatMap(([name, { flag }]) => {
    const key = flag?.slice(2).replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
    return key === undefined ? [] : [[name, options[key]]]
  })
  return Object.fromEntries(entries)
}

function pick<K extends keyof typeof ASK_SETTINGS>(...names: K[]): Settings {
  return Object.fromEntries(names.map((name) => [name, ASK_SETTINGS[name]]))
}

function complain(name: string, problems: string[]): void {
  const all = [...unexpected, ...problems]
  if (all.length === 0) return
  console.error(pc.red(`switchboard ${name} cannot start:`))
  for (const problem of all) console.error(`  - ${problem}`)
  console.error(`"switchboard ${name} --help" explains each setting.`)
  process.exit(USAGE_ERROR)
}

type Line = [label: string, text: string]

function banner(name: string, lines: Line[]): void {
  console.log(`\n  ${pc.bold('Switchboard')} ${name}\n`)
  for (const [label, text] of lines) console.log(`  ${pc.dim(label.padEnd(10))} ${text}`)
  console.log('')
}

function newBotToken(): string {
  return `${randomBytes(6).toString('hex')}@im.bot:${randomBytes(16).toString('hex')}`
}

/** The first signal stops cleanly, the second at once. */
function stopOnSignal(stop: () => Promise<void>): void {
  let stopping = false
  const onSignal = () => {
    if (stopping) process.exit(130)
    stopping = true
    console.error('Stopping…')
    stop().then(() => process.exit(0), fail)
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
}

function fail(error: unknown): never {
  console.error(pc.red(error instanceof AppError ? error.message : `Something went wrong: ${errorText(error)}`))
  process.exit(1)
}
