import { randomBytes } from 'node:crypto'
import pc from 'picocolors'
import { jsonLog } from '../kit/log.ts'
import { parseSimConfig, SIM_SETTINGS } from '../sim/config.ts'
import type { CommandSpec } from './command.ts'
import { banner, stopOnSignal } from './terminal.ts'

/** `switchboard sim` */
export const simCommand: CommandSpec = {
  name: 'sim',
  description: 'run a simulated messaging service that speaks the real bot protocol',
  group: 'Run:',
  settings: SIM_SETTINGS,
  examples: [['switchboard sim --bot-token my-bot-token', 'a messenger to try a hub with']],
  async run({ flags, complain }) {
    const { settings, problems } = parseSimConfig(flags, process.env)
    complain(problems)
    const { startSim } = await import('../sim/main.ts')
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
  },
}

/** As on the real service a bot stays the same when it is logged in anew: conversations are known by it. */
const SIM_BOT = '5ac0ffee0b07@im.bot'

/** A token for a sim's bot, in the real service's form: the same bot each time, with a new secret. */
export function newBotToken(): string {
  return `${SIM_BOT}:${randomBytes(16).toString('hex')}`
}
