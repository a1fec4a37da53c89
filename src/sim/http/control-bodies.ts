import type { Static, TObject } from 'typebox'
import { AppError } from '../../kit/errors.ts'
import { rawElements, rawMember } from '../../kit/lossless-json.ts'
import { type Check, checker } from '../../kit/schema.ts'
import { FAULT_KINDS, FaultBody, type FaultKind, SayBody, SayManyBody } from '../../wire/sim.ts'

/** As `checker`, and a field that the schema does not name is refused too: a misspelt option must not pass in silence. */
export function strictChecker<S extends TObject>(schema: S, what = 'body'): Check<Static<S>> {
  const check = checker(schema, what)
  const known = Object.keys(schema.properties)
  return (value) => {
    const unknown = isObject(value) && Object.keys(value).find((key) => !known.includes(key))
    if (unknown) throw wrong(unknown, `is not known here; the fields are ${known.join(', ')}`)
    return check(value)
  }
}

/** Reads what is to be said; `raw` comes out as the text it had, so that its numbers keep all their digits. */
export function readSayings(body: unknown, bodyText: string): { sayings: SayBody[]; isMany: boolean } {
  if (!isObject(body) || !('messages' in body)) {
    return { sayings: [withRawText(checkSay(body), bodyText)], isMany: false }
  }
  const { messages } = checkMany(body)
  if (!bodyText.includes('"raw"')) return { sayings: messages.map(checkSay), isMany: true }
  const texts = rawElements(rawMember(bodyText, 'messages') ?? '[]')
  return { sayings: messages.map((saying, at) => withRawText(checkSay(saying), texts[at] ?? '{}')), isMany: true }
}

/** Reads a fault; options that do not go with its kind are refused. */
export function readFault(body: unknown): FaultBody {
  if (isObject(body) && 'kind' in body && !FAULT_KINDS.some((kind) => kind === body.kind)) {
    throw wrong('kind', `must be one of ${FAULT_KINDS.join(', ')}`)
  }
  const fault = checkFault(body)
  const { needs = [], takes = [] } = OPTIONS[fault.kind]
  const missing = needs.find((field) => !(field in fault))
  if (missing) throw wrong(missing, `is missing; ${fault.kind} needs it`)
  const allowed: string[] = [...COMMON, ...needs, ...takes]
  const odd = Object.keys(fault).find((field) => !allowed.includes(field))
  if (odd) throw wrong(odd, `does not go with ${fault.kind}; it takes ${allowed.slice(1).join(', ')}`)
  return fault
}

const checkSay = strictChecker(SayBody)
const checkMany = strictChecker(SayManyBody)
const checkFault = strictChecker(FaultBody)

const COMMON = ['kind', 'bot', 'count', 'for_ms'] as const
const OPTIONS: Record<FaultKind, { needs?: (keyof FaultBody)[]; takes?: (keyof FaultBody)[] }> = {
  down: { takes: ['only'] },
  expired: {},
  throttle: {},
  duplicate: { takes: ['fresh_id'] },
  malformed: { takes: ['shape'] },
  slow: { needs: ['delay_ms'], takes: ['only'] },
  http_error: { needs: ['status'], takes: ['only'] },
  bad_json: {},
  refuse_send: { needs: ['ret'], takes: ['errmsg'] },
  unconfirmed: {},
}

function withRawText(saying: SayBody, text: string): SayBody {
  const raw = typeof saying.raw === 'object' ? rawMember(text, 'raw') : undefined
  return raw === undefined ? saying : { ...saying, raw }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function wrong(field: string, problem: string): AppError {
  return new AppError('bad_request', `${field} ${problem}.`, { details: { field } })
}
