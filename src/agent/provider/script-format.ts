import { type Static, Type } from 'typebox'
import { AppError } from '../../kit/errors.ts'
import { checker } from '../../kit/schema.ts'

/**
 * What a scripted model says. In a file it is JSON, in a test plain data, and in both the same:
 *
 * ```json
 * {
 *   "turns": [
 *     [{ "tool_calls": [{ "name": "list_dir", "input": { "path": "." } }] }],
 *     [{ "text": ["There are ", "two files."] }, { "usage": { "input_tokens": 10, "output_tokens": 5 } }],
 *     { "match": "boom", "steps": [{ "error": { "kind": "rate_limited", "message": "later", "retry_after_ms": 100 } }] }
 *   ],
 *   "after": "That is all."
 * }
 * ```
 *
 * A list alone means its `turns`. The turns without `match` are the main line: number n answers a request in which the
 * model has spoken n times (0 for the first). Where the last text of the user contains the `match` of some turns (letters'
 * case does not count), those answer instead, the first of them directly after that text, the second after one answer to
 * it, and so on. When there is none left it says `after`. Nothing is remembered: the same request gives the same turn.
 *
 * Steps are played in order:
 * - `text`: one delta, or a list of them.
 * - `tool_calls`: one or more calls, told at once. `id` is made up when absent; `raw` instead of `input` is the text of the
 *   arguments as a model would write it, and need not be JSON. Unknown tools and repeated ids are played as they stand,
 *   also when the request says that nothing may be called.
 * - `stall`: waits so many milliseconds, or `"forever"` (until the call is aborted).
 * - `usage`: the token counts; estimated when absent.
 * - `error`: fails with this `kind`, `message` and `retry_after_ms`. `finish`: ends with this reason. Either is the last
 *   step; without them the turn ends with `tool_calls` or `stop`.
 */
export type Script = ScriptedTurn[] | { turns: ScriptedTurn[]; after?: string }
/** The steps of a turn, alone or with the words that it answers. */
export type ScriptedTurn = Step[] | { match?: string; steps: Step[] }

/** A script with every turn in its long form. */
export type CheckedScript = Static<typeof SCRIPT>
/** One thing that happens in a turn; exactly one field is there. */
export type Step = Static<typeof STEP>
/** A call, with its input as data or as a text. */
export type ScriptedCall = Static<typeof CALL>

const CALL = Type.Object(
  {
    id: Type.Optional(Type.String()),
    name: Type.String(),
    input: Type.Optional(Type.Unknown()),
    raw: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
)

const FAILURES = ['transient', 'rate_limited', 'context_overflow', 'auth', 'bad_request', 'other'] as const
const REASONS = ['stop', 'tool_calls', 'length', 'other'] as const

const STEP = Type.Object(
  {
    text: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
    tool_calls: Type.Optional(Type.Array(CALL)),
    stall: Type.Optional(Type.Union([Type.Number({ minimum: 0 }), Type.Literal('forever')])),
    usage: Type.Optional(
      Type.Object({ input_tokens: Type.Integer({ minimum: 0 }), output_tokens: Type.Integer({ minimum: 0 }) }),
    ),
    error: Type.Optional(
      Type.Object({
        kind: Type.Enum([...FAILURES]),
        message: Type.String(),
        retry_after_ms: Type.Optional(Type.Number({ minimum: 0 })),
      }),
    ),
    finish: Type.Optional(Type.Enum([...REASONS])),
  },
  { additionalProperties: false },
)

const SCRIPT = Type.Object(
  {
    turns: Type.Array(
      Type.Object({ match: Type.Optional(Type.String()), steps: Type.Array(STEP) }, { additionalProperties: false }),
    ),
    after: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
)

const check = checker(SCRIPT, 'script')

/** The script in its long form, or a `bad_request` that names the place. */
export function readScript(value: unknown): CheckedScript {
  const script = check(lengthen(value))
  for (const [turn, { steps }] of script.turns.entries())
    for (const [index, step] of steps.entries()) {
      const problem = problemOf(step, index === steps.length - 1)
      if (problem) throw new AppError('bad_request', `turns.${turn}.steps.${index} ${problem}.`)
    }
  return script
}

/** A list of turns is a script, a list of steps is a turn. */
function lengthen(value: unknown): unknown {
  const script = Array.isArray(value) ? { turns: value } : value
  if (typeof script !== 'object' || script === null || !('turns' in script) || !Array.isArray(script.turns))
    return script
  return { ...script, turns: script.turns.map((turn: unknown) => (Array.isArray(turn) ? { steps: turn } : turn)) }
}

function problemOf(step: Step, isLast: boolean): string | null {
  const [kind, ...others] = Object.keys(step)
  if (kind === undefined || others.length > 0)
    return `must have one of ${Object.keys(STEP.properties).join(', ')}, and only one`
  if ((kind === 'error' || kind === 'finish') && !isLast) return `must be the last step, since it ends the turn`
  const both = step.tool_calls?.some(({ input, raw }) => input !== undefined && raw !== undefined)
  return both ? 'has a call with both input and raw' : null
}
