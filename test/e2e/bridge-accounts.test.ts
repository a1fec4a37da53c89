import { expect, vi } from 'vitest'
import { soon } from '../support/soon.ts'
import { startTestBridge } from '../support/test-bridge.ts'
import { twoAccounts } from '../support/two-accounts.ts'
import { verifies } from '../support/verifies.ts'

vi.setConfig({ testTimeout: 60_000 })

verifies('bridge:session:per-account', async () => {
  const { hub } = await twoAccounts()
  const bridge = await startTestBridge({ hub, agentOptions: { script: { turns: [], after: 'Done.' } } })
  const said = async (bot: string) =>
    (await hub.sim.control.conversation({ user: 'ann', bot })).messages.filter(({ from }) => from === 'bot').length
  bridge.say('ann', 'in main')
  bridge.say('ann', 'in the shop', { bot: 'shop' })
  await soon(async () => expect([await said('default'), await said('shop')]).toEqual([1, 1]))
  bridge.say('ann', 'more in the shop', { bot: 'shop' })
  await soon(async () => expect(await said('shop')).toBe(2))
  expect(await said('default')).toBe(1)
  const { body: sessions } = await bridge.agent.call('GET', '/sessions')
  const goals: string[][] = []
  for (const { session_id: id } of sessions) {
    const { body } = await bridge.agent.call('GET', `/sessions/${id}/runs`)
    goals.push(body.runs.map(({ goal }: { goal: string }) => goal))
  }
  expect(goals.sort((a, b) => a.length - b.length)).toEqual([['in main'], ['in the shop', 'more in the shop']])
})
