import { readFile } from 'node:fs/promises'
import { AppError } from '../../kit/errors.ts'
import { sleep } from '../../kit/retry.ts'
import type { Message } from '../model.ts'
import { readArguments } from './arguments.ts'
import { cancelled } from './cancelled.ts'
import { lastUserText } from './last-user-text.ts'
import { type Provider, ProviderError, type ProviderRequest, type TurnEvent } from './port.ts'
import { type CheckedScript, readScript, type Script, type ScriptedCall, type Step } from './script-format.ts'
import { estimateTokens, textTokens } from './tokens.ts'

const AFTER = 'The script has nothing more to say.'

/** A model that says what a {@link Script} says: always the same to the same request, for any number of sessions at once. */
export function scriptedProvider(script: Script, name = 'scripted'): Provider {
  return provider(readScript(script), name)
}

/** The scripted model of a JSON file. */
export async function scriptedFile(path: string): Promise<Provider> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new AppError('bad_script', `The script ${path} cannot be read.`, { cause: error })
  })
  try {
    return provider(readScript(JSON.parse(text)), `scripted:${path}`)
  } catch (error) {
    const problem = error instanceof AppError ? error.message : 'it is not valid JSON.'
    throw new AppError('bad_script', `The script ${path} cannot be played: ${problem}`, { cause: error })
  }
}

function provider(script: CheckedScript, name: string): Provider {
  return {
    name,
    contextWindow: null,
    price: null,
    stream: (request, signal) => play(chooseTurn(script, request.messages), request, signal),
  }
}

interface ChosenTurn {
  steps: Step[]
  /** How often the model has spoken before. */
  spoken: number
}

function chooseTurn({ turns, after = AFTER }: CheckedScript, messages: readonly Message[]): ChosenTurn {
  const spoken = answers(messages)
  const asked = lastUserText(messages)
  const matching = turns.filter(({ match }) => match !== undefined && contains(asked.text, match))
  const chosen =
    matching.length > 0
      ? matching[answers(messages.slice(asked.index + 1))]
      : turns.filter(({ match }) => match === undefined)[spoken]
  return { steps: chosen?.steps ?? [{ text: after }], spoken }
}

function answers(messages: readonly Message[]): number {
  return messages.filter(({ role }) => role === 'assistant').length
}

function contains(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase())
}

async function* play(
  { steps, spoken }: ChosenTurn,
  { messages, system, tools }: ProviderRequest,
  signal: AbortSignal,
): AsyncGenerator<TurnEvent, void, undefined> {
  const said: string[] = []
  const calls: ScriptedCall[] = []
  for (const step of steps) {
    if (signal.aborted) throw cancelled(signal)
    if (step.stall !== undefined) await stall(step.stall, signal)
    if (step.error !== undefined) throw failure(step.error)
    for (const delta of [step.text ?? []].flat().filter((text) => text !== '')) {
      said.push(delta)
      yield { type: 'text', delta }
      if (signal.aborted) throw cancelled(signal)
    }
    for (const call of step.tool_calls ?? []) {
      calls.push(call)
      yield toEvent(call, `call_${spoken + 1}_${calls.length}`)
    }
  }
  if (signal.aborted) throw cancelled(signal)
  const usage = steps.findLast((step) => step.usage !== undefined)?.usage
  yield {
    type: 'finish',
    reason: steps.at(-1)?.finish ?? (calls.length > 0 ? 'tool_calls' : 'stop'),
    inputTokens: usage?.input_tokens ?? estimateTokens(messages, system, tools),
    outputTokens: usage?.output_tokens ?? Math.max(1, textTokens(said.join('') + JSON.stringify(calls))),
  }
}

function toEvent({ id, name, input, raw }: ScriptedCall, madeUpId: string): TurnEvent {
  const read = raw === undefined ? { input: input === undefined ? {} : input } : readArguments(raw)
  return { type: 'tool_call', id: id ?? madeUpId, name, ...read }
}

async function stall(how: number | 'forever', signal: AbortSignal): Promise<void> {
  if (how !== 'forever') await sleep(how, signal)
  else if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  if (signal.aborted) throw cancelled(signal)
}

function failure({ kind, message, retry_after_ms }: NonNullable<Step['error']>): ProviderError {
  return new ProviderError(kind, message, { retryAfterMs: retry_after_ms ?? null })
}
