#!/usr/bin/env node
import { Command } from 'commander'
import { agentCommand } from './cli/agent-command.ts'
import { bridgeCommand } from './cli/bridge-command.ts'
import { clientsCommand, registerCommand } from './cli/client-commands.ts'
import { addCommand, type CommandSpec, USAGE_ERROR } from './cli/command.ts'
import { hubCommand } from './cli/hub-command.ts'
import { loginCommand } from './cli/login-command.ts'
import { simCommand } from './cli/sim-command.ts'
import { fail } from './cli/terminal.ts'
import { VERSION } from './cli/version.ts'

const COMMANDS: readonly CommandSpec[] = [
  hubCommand,
  simCommand,
  agentCommand,
  bridgeCommand,
  registerCommand,
  clientsCommand,
  loginCommand,
]

const program = new Command('switchboard')
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : USAGE_ERROR))
  .description('One messaging bot account, many AI agents.')
  .version(VERSION)
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
for (const spec of COMMANDS) addCommand(program, spec)

// Whoever reads the banner may stop reading; the service goes on.
process.stdout.on('error', () => {})

await program.parseAsync(process.argv).catch(fail)
