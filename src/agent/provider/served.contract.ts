import { openAiSdk } from './ai-sdk.ts'
import { type ModelServer, modelServer, type Reply } from './model-server.contract.ts'
import type { Dialect } from './model-wire.contract.ts'
import type { Vendor } from './models.ts'
import type { Provider } from './port.ts'

/** One of the AI SDK's providers on the wire. */
export interface Served {
  vendor: Vendor
  dialect: Dialect
  /** How many pieces of a stream there are up to the first delta of text. */
  firstText: number
  elsewhere?: boolean
}

/** The key that every request carries and no message may hold. */
export const KEY = 'sk-test-0123456789abcdefghij'

/** Every provider of the AI SDK, and both formats of OpenAI. */
export const SERVED: Record<string, Served> = {
  'openai, Responses API': { vendor: 'openai', dialect: 'responses', firstText: 3 },
  'openai at another address, chat completions': { vendor: 'openai', dialect: 'chat', firstText: 2, elsewhere: true },
  'openai-compatible': { vendor: 'openai-compatible', dialect: 'chat', firstText: 2 },
  anthropic: { vendor: 'anthropic', dialect: 'anthropic', firstText: 4 },
  google: { vendor: 'google', dialect: 'google', firstText: 1 },
}

/** A provider in front of a server with prepared replies. */
export async function serve(
  { vendor, elsewhere = false }: Served,
  ...replies: Reply[]
): Promise<{ provider: Provider; server: ModelServer }> {
  const server = await modelServer(...replies)
  return { server, provider: await openAt(`${server.url}/v1`, vendor, elsewhere) }
}

/** A provider in front of any address. */
export function openAt(baseUrl: string, vendor: Vendor, elsewhere = false, model = 'm-1'): Promise<Provider> {
  return openAiSdk({
    vendor,
    model,
    name: `${vendor}:${model}`,
    key: { name: 'THE_KEY', value: KEY },
    keyNames: ['THE_KEY'],
    baseUrl,
    elsewhere,
    contextWindow: null,
    price: null,
  })
}
