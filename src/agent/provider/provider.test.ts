import { withClocks } from './clocks.ts'
import { demoProvider } from './demo.ts'
import type { Provider } from './port.ts'
import { type ProviderHarness, providerContract } from './provider.contract.ts'
import { withRetries } from './retry.ts'
import type { Step } from './script-format.ts'
import { scriptedProvider } from './scripted.ts'
import { SERVED, type Served, serve } from './served.contract.ts'

const WORDS: Step[] = [{ text: ['Hel', 'lo.'] }]
const CALL: Step[] = [{ tool_calls: [{ name: 'list_dir', input: { path: '.' } }] }]

const scripted: ProviderHarness = {
  words: async () => scriptedProvider([WORDS, WORDS]),
  calls: async () => scriptedProvider([CALL]),
  stalls: async () => ({ provider: scriptedProvider([[{ text: 'Hel' }, { stall: 'forever' }]]) }),
}

providerContract('scripted', scripted)
providerContract('demo', {
  words: async () => demoProvider(),
  calls: async () => demoProvider(),
  stalls: async () => ({ provider: demoProvider({ deltaMs: 1_000_000 }) }),
})
for (const [name, at] of Object.entries(SERVED)) providerContract(name, served(at))
providerContract('scripted, with clocks and retries', wrapped(scripted))
providerContract(
  'anthropic, with clocks and retries',
  wrapped(served({ vendor: 'anthropic', dialect: 'anthropic', firstText: 4 })),
)

function served(at: Served): ProviderHarness {
  const text = ['Hel', 'lo.']
  return {
    words: async () => (await serve(at, { text })).provider,
    calls: async () => {
      const calls = [{ id: 'call_1', name: 'list_dir', arguments: '{"path":"."}' }]
      return (await serve(at, { calls })).provider
    },
    stalls: async () => {
      const { provider, server } = await serve(at, { text, fault: { type: 'stall', after: at.firstText } })
      return { provider, left: server.hungUp }
    },
  }
}

function wrapped({ words, calls, stalls }: ProviderHarness): ProviderHarness {
  const wrap = (provider: Provider) => withRetries(withClocks(provider))
  return {
    words: async () => wrap(await words()),
    calls: async () => wrap(await calls()),
    stalls: async () => {
      const { provider, ...rest } = await stalls()
      return { provider: wrap(provider), ...rest }
    },
  }
}
