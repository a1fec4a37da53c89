import type { Command } from 'commander'
import { type CommandSpec, USAGE_ERROR } from './command.ts'

/** A command and the options it has, for a shell to complete. */
interface Completable {
  name: string
  description: string
  options: { long: string; description: string; takesValue: boolean }[]
}

const SHELLS = ['bash', 'zsh', 'fish'] as const

/** `switchboard completion`; the program is asked for its commands when it is complete itself. */
export function completionCommand(program: () => Command): CommandSpec {
  return {
    name: 'completion',
    description: 'print what makes a shell complete commands and options',
    group: 'Help:',
    words: [{ name: '<shell>', help: SHELLS.join(', ') }],
    settings: {},
    examples: [
      ['source <(switchboard completion bash)', 'in ~/.bashrc'],
      ['source <(switchboard completion zsh)', 'in ~/.zshrc'],
      ['switchboard completion fish > ~/.config/fish/completions/switchboard.fish', ''],
    ],
    async run({ words: [shell = ''], complain }) {
      complain(SHELLS.some((one) => one === shell) ? [] : [`${shell} is none of ${SHELLS.join(', ')}`])
      const commands = completables(program())
      if (shell === 'bash') console.log(bash(commands))
      else if (shell === 'zsh') console.log(zsh(commands))
      else if (shell === 'fish') console.log(fish(commands))
      else process.exitCode = USAGE_ERROR
    },
  }
}

function completables(program: Command): Completable[] {
  return program.commands.map((command) => ({
    name: command.name(),
    description: command.description(),
    options: command.options.map(({ long, description, required }) => ({
      long: long ?? '',
      description,
      takesValue: required,
    })),
  }))
}

function bash(commands: Completable[]): string {
  const cases = commands.map(
    ({ name, options }) => `    ${name}) words="${[...options.map(({ long }) => long), '--help'].join(' ')}" ;;`,
  )
  return `_switchboard() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
    *) words="${commands.map(({ name }) => name).join(' ')} help --help --version" ;;
  esac
  if [[ \${COMP_CWORD} -eq 1 ]]; then words="${commands.map(({ name }) => name).join(' ')} help --help --version"; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _switchboard switchboard`
}

function zsh(commands: Completable[]): string {
  const quoted = (text: string) => text.replace(/'/g, `'\\''`).replace(/[[\]:]/g, '\\$&')
  const list = commands.map(({ name, description }) => `    '${name}:${quoted(description)}'`)
  const cases = commands.map(({ name, options }) => {
    const flags = options.map(
      ({ long, description, takesValue }) => `'${long}[${quoted(description)}]${takesValue ? ':value:_files' : ''}'`,
    )
    return `    ${name}) _arguments ${[...flags, `'--help[show how it is used]'`, `'*:argument:_files'`].join(' ')} ;;`
  })
  return `#compdef switchboard
_switchboard() {
  local -a commands
  commands=(
${list.join('\n')}
  )
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  local name="\${words[2]}"
  shift words; (( CURRENT-- ))
  case "$name" in
${cases.join('\n')}
  esac
}
compdef _switchboard switchboard`
}

function fish(commands: Completable[]): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`
  const lines = commands.flatMap(({ name, description, options }) => [
    `complete -c switchboard -n __fish_use_subcommand -f -a ${name} -d ${quoted(description)}`,
    ...options.map(
      ({ long, description: says, takesValue }) =>
        `complete -c switchboard -n '__fish_seen_subcommand_from ${name}' -l ${long.slice(2)}${takesValue ? ' -r' : ''} -d ${quoted(says)}`,
    ),
  ])
  return lines.join('\n')
}
