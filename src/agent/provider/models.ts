import { AppError } from '../../kit/errors.ts'
import { readHttpUrl, readSecret } from '../../kit/settings.ts'
import { demoProvider } from './demo.ts'
import { knownElsewhere, knownModel, namesLike } from './known-models.ts'
import type { Provider } from './port.ts'
import { scriptedFile } from './scripted.ts'

/** The environment, or a part of it. */
export type Env = Readonly<Record<string, string | undefined>>

/** A provider and one of its models. */
export interface ModelSpec {
  provider: Vendor | 'demo' | 'scripted'
  /** For `scripted` the path of its file, for `demo` nothing. */
  model: string
}

/** Who serves models over the network. */
export type Vendor = 'anthropic' | 'openai' | 'google' | 'openai-compatible'

interface VendorSettings {
  /** null: it must be named. */
  defaultModel: string | null
  /** Environment names; the first one that is set counts. */
  keyNames: readonly string[]
  urlNames: readonly string[]
  /** null: an address must be given. */
  home: string | null
}

/** In the order in which a key chooses its provider. */
const VENDORS: Record<Vendor, VendorSettings> = {
  anthropic: {
    defaultModel: 'claude-sonnet-5-5',
    keyNames: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'],
    urlNames: ['ANTHROPIC_BASE_URL'],
    home: 'https://api.anthropic.com/v1',
  },
  openai: {
    defaultModel: 'gpt-6.1-sol',
    keyNames: ['OPENAI_API_KEY'],
    urlNames: ['OPENAI_BASE_URL'],
    home: 'https://api.openai.com/v1',
  },
  google: {
    defaultModel: 'gemini-3.8-flash',
    keyNames: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY'],
    urlNames: ['GOOGLE_GENERATIVE_AI_BASE_URL', 'GEMINI_BASE_URL'],
    home: 'https://generativelanguage.googleapis.com/v1beta',
  },
  'openai-compatible': {
    defaultModel: null,
    keyNames: ['OPENAI_COMPATIBLE_API_KEY'],
    urlNames: ['OPENAI_COMPATIBLE_BASE_URL'],
    home: null,
  },
}
const COMPATIBLE_MODEL = 'OPENAI_COMPATIBLE_MODEL'
const FORMS = 'anthropic:<model>, openai:<model>, google:<model>, openai-compatible:<model>, scripted:<file> or demo'

/** Reads `provider:model`; a provider alone means its default model. */
export function parseModel(text: string): ModelSpec {
  const colon = text.indexOf(':')
  const provider = (colon < 0 ? text : text.slice(0, colon)).trim()
  const model = colon < 0 ? '' : text.slice(colon + 1).trim()
  if (provider === 'demo' && colon < 0) return { provider, model }
  if (provider === 'demo') throw unknownModel('The demo model has no variants: write just demo.')
  if (provider === 'scripted') {
    if (model === '') throw unknownModel('scripted needs a file: write scripted:<file>.')
    return { provider, model }
  }
  if (!isVendor(provider)) throw unknownProvider(provider, text)
  const chosen = model || VENDORS[provider].defaultModel
  if (chosen === null) throw unknownModel(`${provider} has no default model: write ${provider}:<model>.`)
  return { provider, model: chosen }
}

/** The model that was asked for; else that of a key that is there; else `demo`. */
export function chooseModel(asked: string | null | undefined, env: Env): ModelSpec {
  if (asked) return parseModel(asked)
  for (const [provider, { defaultModel, keyNames }] of Object.entries(VENDORS))
    if (isVendor(provider) && defaultModel !== null && setting(env, keyNames)) return { provider, model: defaultModel }
  const url = setting(env, VENDORS['openai-compatible'].urlNames)
  if (url === null) return { provider: 'demo', model: '' }
  const model = setting(env, [COMPATIBLE_MODEL])?.value
  if (model !== undefined) return { provider: 'openai-compatible', model }
  throw unknownModel(`${url.name} is set: name its model too, with openai-compatible:<model> or ${COMPATIBLE_MODEL}.`)
}

/** How a model is shown, and read again by {@link parseModel}. */
export function modelName({ provider, model }: ModelSpec): string {
  return model === '' ? provider : `${provider}:${model}`
}

/** Makes a provider ready to be asked. Nothing is sent yet; what its packages need is loaded now, and for it alone. */
export async function openProvider(
  spec: ModelSpec,
  env: Env,
  { demoDeltaMs = 0 }: { demoDeltaMs?: number } = {},
): Promise<Provider> {
  if (spec.provider === 'demo') return demoProvider({ deltaMs: demoDeltaMs })
  if (spec.provider === 'scripted') return scriptedFile(spec.model)
  const vendor = spec.provider
  const { keyNames, urlNames, home } = VENDORS[vendor]
  const key = checked(setting(env, keyNames), readSecret)
  const url = checked(setting(env, urlNames), readHttpUrl)
  if (url === null && home === null) throw notConfigured(`${vendor} needs an address: set ${urlNames.join(' or ')}.`)
  if (url === null && key === null) throw notConfigured(`${vendor} needs a key: set ${keyNames.join(' or ')}.`)
  const elsewhere = url !== null && !isHome(url.value, home)
  const { openAiSdk } = await import('./ai-sdk.ts')
  return openAiSdk({
    vendor,
    model: spec.model,
    name: modelName(spec),
    key,
    keyNames,
    baseUrl: versioned(vendor, url?.value ?? home ?? ''),
    elsewhere,
    ...(elsewhere ? knownElsewhere(spec.model) : knownModel(vendor, spec.model)),
  })
}

interface Setting {
  name: string
  value: string
}

/** The first of these names that is set to something. */
function setting(env: Env, names: readonly string[]): Setting | null {
  for (const name of names) {
    const value = env[name]?.trim()
    if (value) return { name, value }
  }
  return null
}

function checked(found: Setting | null, read: (text: string) => string): Setting | null {
  if (found === null) return null
  try {
    return { name: found.name, value: read(found.value) }
  } catch (error) {
    throw notConfigured(`${found.name} ${error instanceof Error ? error.message : 'is not valid'}.`)
  }
}

function isHome(url: string, home: string | null): boolean {
  return home !== null && new URL(url).host === new URL(home).host
}

/** Other clients of these two vendors write the address without its version; both forms are taken. */
function versioned(vendor: Vendor, url: string): string {
  if (vendor === 'anthropic' && !/\/v\d+$/.test(url)) return `${url}/v1`
  if (vendor === 'google' && !/\/v\d+(alpha|beta)?\d*$/.test(url)) return `${url}/v1beta`
  return url
}

function isVendor(text: string): text is Vendor {
  return Object.hasOwn(VENDORS, text)
}

function unknownProvider(provider: string, text: string): AppError {
  const meant = namesLike(text)
  const hint = meant.length > 0 ? ` Did you mean ${meant.join(' or ')}?` : ''
  return unknownModel(`There is no provider "${provider}".${hint} A model is written as ${FORMS}.`)
}

function unknownModel(message: string): AppError {
  return new AppError('unknown_model', message, { details: { field: 'model' } })
}

function notConfigured(message: string): AppError {
  return new AppError('model_not_configured', message, { details: { field: 'model' } })
}
