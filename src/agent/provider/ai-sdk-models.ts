import type { LanguageModel } from 'ai'
import type { KnownModel } from './known-models.ts'
import type { Vendor } from './models.ts'

/** Where a model is and how to get in. */
export interface AiSdkModel extends KnownModel {
  vendor: Vendor
  model: string
  /** `provider:model`, as it is shown. */
  name: string
  key: { name: string; value: string } | null
  keyNames: readonly string[]
  baseUrl: string
  /** The address is not the vendor's own. */
  elsewhere: boolean
}

/** Makes the SDK's model, which fetches with what it is given. */
export type ModelFactory = (fetch: typeof globalThis.fetch) => LanguageModel

/** Loads the package of one vendor. The key and the address are always given: the packages would look into the environment. */
export async function modelFactory(at: AiSdkModel): Promise<ModelFactory> {
  // The Responses API, which the other package speaks, is not what other servers of this kind offer.
  if (at.vendor === 'openai-compatible' || (at.vendor === 'openai' && at.elsewhere)) return compatible(at)
  if (at.vendor === 'anthropic') return anthropic(at)
  return at.vendor === 'openai' ? openai(at) : google(at)
}

const NO_KEY = 'none'

async function anthropic({ model, key, baseUrl: baseURL }: AiSdkModel): Promise<ModelFactory> {
  const { createAnthropic } = await import('@ai-sdk/anthropic')
  const access = key?.name === 'ANTHROPIC_AUTH_TOKEN' ? { authToken: key.value } : { apiKey: key?.value ?? NO_KEY }
  return (fetch) => createAnthropic({ baseURL, ...access, fetch })(model)
}

async function openai({ model, key, baseUrl: baseURL }: AiSdkModel): Promise<ModelFactory> {
  const { createOpenAI } = await import('@ai-sdk/openai')
  return (fetch) => createOpenAI({ baseURL, apiKey: key?.value ?? NO_KEY, fetch }).responses(model)
}

async function google({ model, key, baseUrl: baseURL }: AiSdkModel): Promise<ModelFactory> {
  const { createGoogleGenerativeAI } = await import('@ai-sdk/google')
  return (fetch) => createGoogleGenerativeAI({ baseURL, apiKey: key?.value ?? NO_KEY, fetch })(model)
}

async function compatible({ vendor, model, key, baseUrl: baseURL }: AiSdkModel): Promise<ModelFactory> {
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
  const access = key === null ? {} : { apiKey: key.value }
  const body = /deepseek/i.test(model) ? { transformRequestBody: withEmptyThoughts } : {}
  return (fetch) =>
    createOpenAICompatible({ name: vendor, baseURL, ...access, ...body, includeUsage: true, fetch })(model)
}

/** DeepSeek refuses a call in the history that has no `reasoning_content`; an empty one will do. Transcripts keep none. */
function withEmptyThoughts(body: Record<string, unknown>): Record<string, unknown> {
  if (!Array.isArray(body.messages)) return body
  const messages = body.messages.map((message: unknown) =>
    isRecord(message) && message.tool_calls !== undefined ? { reasoning_content: '', ...message } : message,
  )
  return { ...body, messages }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
