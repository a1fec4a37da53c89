import { rawElements, rawMember } from '../../kit/lossless-json.ts'
import { checker } from '../../kit/schema.ts'
import { FaultBody, type FaultKind, SayBody, SayManyBody } from '../../wire/sim.ts'
import { wrongField } from '../wrong-field.ts'

/** Reads what is to be said; `raw` comes out as the text it had, so that its numbers keep all their digits. */
export function readSayings(body: unknown, bodyText: string): { sayings: SayBody[]; isMany: boolean } {
  if (!isObject(body) || !('messages' in body)) {
    return { sayings: [withRawText(checkSay(body), bodyText)], isMany: false }
  }
  const { messages } = checkMany(body)
  if (!bodyText.includes('"raw"')) return { sayings: messages, isMany: true }
  const texts = rawElements(rawMember(bodyText, 'messages') ?? '[]')
  return { sayings: messages.map((saying, at) => withRawText(saying, texts[at] ?? '{}')), isMany: true }
}

/** Reads a fault; options that do not go with its kind are refused. */
export function readFault(body: unknown): FaultBody {
  const fault = checkFault(body)
  const { needs = [], takes = [] } = OPTIONS[fault.kind]
  const missing = needs.find((field) => !(field in fault))
  if (missing) throw wrongField(missing, `is missing; ${fault.kind} needs it`)
  const allowed: string[] = [...COMMON, ...needs, ...takes]
  const odd = Object.keys(fault).find((field) => !allowed.includes(field))
  if (odd) throw wrongField(odd, `does not go with ${fault.kind}; it takes ${allowed.slice(1).join(', ')}`)
  return fault
}

const checkSay = checker(SayBody)
const checkMany = checker(SayManyBody)
const checkFault = checker(FaultBody)

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
