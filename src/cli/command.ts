import type { Command } from 'commander'
import pc from 'picocolors'
import { readSettings, type Settings, type Values } from '../kit/settings.ts'

export type Flags = Record<string, string | boolean | undefined>

/** What was typed after a command's name. */
export interface Given {
  flags: Flags
  /** The words that are no options, as many as the command takes. */
  words: string[]
  /** Ends the program, telling these and all else that is wrong, if anything is. */
  complain(problems: readonly string[]): void
  /** Reads a table of settings and complains of what is wrong with it. */
  read<S extends Settings>(settings: S): Values<S>
}

/** One command of the program. */
export interface CommandSpec {
  name: string
  /** One line, for the list of commands. */
  description: string
  /** Words after the name: `<name>` is needed, `[name]` is not, `[ids...]` takes all that are left. */
  words?: readonly { name: string; help: string }[]
  settings: Settings
  /** Shown below the options: what one would type, and why. */
  examples?: readonly [line: string, says: string][]
  /** The heading it stands under in the list of commands. */
  group: 'Run:' | 'Talk:' | 'Look after a hub:' | 'Help:'
  run(given: Given): Promise<void>
}

/** The exit code of a command that was typed wrongly. */
export const USAGE_ERROR = 2

/** Adds a command: flags, environment names, `--help` and the list of all mistakes come from its table of settings. */
export function addCommand(program: Command, spec: CommandSpec): void {
  const { name, description, settings, words = [], group, examples = [] } = spec
  const added = program.command(name).description(description).allowUnknownOption().allowExcessArguments()
  added.helpGroup(group)
  for (const word of words) added.argument(word.name, word.help)
  addOptions(added, settings)
  const environment = Object.values(settings).filter(({ flag }) => flag === undefined)
  if (environment.length > 0) {
    const lines = environment.map(({ env, help }) => `  ${String(env).padEnd(22)} ${help}`)
    added.addHelpText('after', `\nFrom the environment only:\n${lines.join('\n')}`)
  }
  if (examples.length > 0) {
    const width = Math.max(...examples.map(([line]) => line.length))
    const lines = examples.map(([line, says]) => `  $ ${line.padEnd(width)}  ${says}`.trimEnd())
    added.addHelpText('after', `\nExamples:\n${lines.join('\n')}`)
  }
  added.action(async () => {
    const { plain, unknown } = sortArguments(added.args)
    const most = words.some((word) => word.name.endsWith('...]')) ? Number.POSITIVE_INFINITY : words.length
    const unexpected = [...unknown, ...plain.slice(most)].map((text) => {
      const env = environment.find((one) => text === flagFor(one.env))?.env
      return env === undefined
        ? `${text} is not an option or argument of "switchboard ${name}"`
        : `${text} is no option, as flags show in process lists; set ${env} in the environment`
    })
    const complain = (problems: readonly string[]) => complainOf(name, [...unexpected, ...problems])
    const flags = byName(settings, added.opts())
    await spec.run({
      flags,
      words: plain.slice(0, most),
      complain,
      read(table) {
        const { values, problems } = readSettings(table, flags, process.env)
        complain(problems)
        return values
      },
    })
  })
}

function addOptions(command: Command, settings: Settings): void {
  for (const { flag, placeholder, env, help, fallback, fallbackText } of Object.values(settings)) {
    if (flag === undefined) continue
    const shown =
      fallbackText ?? (fallback === null || fallback === undefined || fallback === false ? undefined : String(fallback))
    const notes = [env === undefined ? '' : `env ${env}`, shown === undefined ? '' : `default: ${shown}`].filter(
      (note) => note !== '',
    )
    command.option(
      placeholder === undefined ? flag : `${flag} ${placeholder}`,
      notes.length === 0 ? help : `${help} (${notes.join('; ')})`,
    )
  }
}

function complainOf(name: string, problems: readonly string[]): void {
  if (problems.length === 0) return
  console.error(pc.red(`switchboard ${name} cannot start:`))
  for (const problem of problems) console.error(`  - ${problem}`)
  console.error(`"switchboard ${name} --help" explains each setting.`)
  process.exit(USAGE_ERROR)
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
