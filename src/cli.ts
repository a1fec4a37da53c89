#!/usr/bin/env node
import { Command } from 'commander'
import { agentCommand } from './cli/agent-command.ts'
import { backupCommand } from './cli/backup-command.ts'
import { bridgeCommand } from './cli/bridge-command.ts'
import { chatCommand } from './cli/chat-command.ts'
import { clientsCommand, registerCommand, removeCommand, rotateCommand } from './cli/client-commands.ts'
import { addCommand, type CommandSpec, USAGE_ERROR } from './cli/command.ts'
import { completionCommand } from './cli/completion-command.ts'
import { doctorCommand } from './cli/doctor-command.ts'
import { hubCommand } from './cli/hub-command.ts'
import { deadLettersCommand, messagesCommand } from './cli/letter-commands.ts'
import { loginCommand } from './cli/login-command.ts'
import { migrateCommand } from './cli/migrate-command.ts'
import { simCommand } from './cli/sim-command.ts'
import { statusCommand } from './cli/status-command.ts'
import { fail } from './cli/terminal.ts'
import { upCommand } from './cli/up-command.ts'
import { VERSION } from './cli/version.ts'

const COMMANDS: readonly CommandSpec[] = [
  upCommand,
  hubCommand,
  agentCommand,
  bridgeCommand,
  simCommand,
  chatCommand,
  statusCommand,
  doctorCommand,
  clientsCommand,
  loginCommand,
  registerCommand,
  rotateCommand,
  removeCommand,
  messagesCommand,
  deadLettersCommand,
  backupCommand,
  migrateCommand,
  completionCommand(() => program),
]

const program: Command = new Command('switchboard')
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : USAGE_ERROR))
  .description('One messaging bot account, many AI agents.')
  .version(VERSION)
  .addHelpCommand(
    new Command('help')
      .argument('[command]')
      .helpOption(false)
      .description('show how a command is used')
      .helpGroup('Help:'),
  )
  .showHelpAfterError('(switchboard --help shows what there is)')
  .addHelpText(
    'after',
    `
Try it, with no account and nothing to configure:
  $ switchboard up                         everything, with a simulated messenger and a demo model
  $ switchboard chat                       in another terminal: talk to the agent
  $ switchboard register my-agent          get a token for an AI client of your own
  $ curl -X POST http://127.0.0.1:8766/sim/say -d '{"user":"ann","text":"list files"}'
  $ switchboard messages                   what came, where it went and why`,
  )
for (const spec of COMMANDS) addCommand(program, spec)

// Whoever reads the banner may stop reading; the service goes on.
process.stdout.on('error', () => {})

await program.parseAsync(process.argv).catch(fail)
