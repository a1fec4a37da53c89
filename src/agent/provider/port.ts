import type { Message } from '../model.ts'

/** A model, one turn at a time. */
export interface Provider {
  /** `provider:model`, as it is shown. */
  readonly name: string
  /** How many tokens a request may have; null when it is not known. */
  readonly contextWindow: number | null
  /** US dollars per million tokens; null when it is not known. */
  readonly price: { input: number; output: number } | null
  /**
   * Asks the model for one turn. Ends with exactly one `finish`, or throws a {@link ProviderError}; when `signal` aborts it
   * throws at once (kind `other`). A caller that stops reading ends the call.
   */
  stream(request: ProviderRequest, signal: AbortSignal): AsyncIterable<TurnEvent>
}

export interface ProviderRequest {
  system: string
  /** Valid for every provider: each tool call has exactly one result, no empty blocks. */
  messages: Message[]
  tools: ToolDescription[]
  /** `none`: the model is to answer without calling anything. */
  toolChoice: 'auto' | 'none'
  /** Called for every sign of life, also of what is no event yet: thinking, pieces of a call, keep-alives. For clocks. */
  onActivity?: () => void
}

/** What a model is told of a tool. */
export interface ToolDescription {
  name: string
  description: string
  /** JSON Schema of the input. */
  parameters: Record<string, unknown>
}

/** What happens in a turn. */
export type TurnEvent =
  | { type: 'text'; delta: string }
  /** Complete: the input has been parsed. `invalid` holds the text that was no JSON. */
  | { type: 'tool_call'; id: string; name: string; input: unknown; invalid?: string }
  | { type: 'finish'; reason: 'stop' | 'tool_calls' | 'length' | 'other'; inputTokens: number; outputTokens: number }

/**
 * - `transient`: worth another try (network, 5xx, a silence); `rate_limited` too, after `retryAfterMs`.
 * - `context_overflow`: the request is too long for the model.
 * - `auth`, `bad_request`, `other`: trying again will not help.
 */
export type ProviderFailure = 'transient' | 'rate_limited' | 'context_overflow' | 'auth' | 'bad_request' | 'other'

/** What went wrong with a turn. Its text is for a person and never holds a key. */
export class ProviderError extends Error {
  readonly kind: ProviderFailure
  readonly retryAfterMs: number | null

  constructor(
    kind: ProviderFailure,
    message: string,
    { retryAfterMs = null, cause }: { retryAfterMs?: number | null; cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.name = 'ProviderError'
    this.kind = kind
    this.retryAfterMs = retryAfterMs
  }
}
