import { silentLog } from '../../src/kit/log.ts'
import { type RunningSim, startSim } from '../../src/sim/main.ts'
import { startTestHub, type TestHub } from './test-hub.ts'

/** A hub with two bot accounts, `main` and `shop`, on one simulated service. */
export async function twoAccounts(): Promise<{ hub: TestHub; sim: RunningSim }> {
  const sim = await startSim({ host: '127.0.0.1', port: 0, botToken: 'a@im.bot:b', holdMs: 2_000, log: silentLog })
  const { bot_id: shopId, bot_token: shopToken } = sim.control.accounts.add({ name: 'shop' })
  const login = (botToken: string, botId: string | null, source: string) => ({
    botToken,
    baseUrl: sim.url,
    botId,
    userId: null,
    source,
    replaces: null,
  })
  const logins = new Map([
    ['main', login(sim.botToken, null, 'a')],
    ['shop', login(shopToken, shopId, 'b')],
  ])
  const hub = await startTestHub({ sim, logins })
  return { hub, sim }
}
