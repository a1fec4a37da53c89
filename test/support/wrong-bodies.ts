import fc from 'fast-check'
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'

/**
 * Bodies that are wrong, made from the schema of an endpoint and a body that is right: each field in turn is left out,
 * null, of every other type, too short, too long, out of range. What the schema takes is not among them, but for those
 * marked `control characters`, of which the endpoint decides.
 */
export interface WrongBody {
  /** For a title: `msg.item_list is null`. */
  what: string
  /** The field that is wrong, with dots; empty for the body itself. */
  field: string
  kind: 'value' | 'missing' | 'huge' | 'control characters' | 'not JSON' | 'not an object'
  /** The body's text on the wire. */
  text: string
}

export interface Subject {
  schema: TSchema
  /** A body that the endpoint takes. */
  good: Record<string, Json>
  /** The most bytes the endpoint reads. */
  bodyLimitBytes: number
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** What JSON Schema says of a field, as far as it matters here. */
interface Plain {
  properties?: Record<string, Plain>
  items?: Plain
  anyOf?: Plain[]
  type?: string
  maxLength?: number
  minimum?: number
  maximum?: number
  maxItems?: number
}

const CONTROL_CHARACTERS = 'a\u0000b\u0007c\u001b[31md\r\n\u007f\u0085\u2028\u202e'
const ANY_TYPE: Json[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  2 ** 60,
  1e21,
  '',
  ' ',
  'some text',
  [],
  [null],
  ['x'],
  {},
  { a: 1 },
]

const NOT_JSON = [
  '{',
  '}',
  '{"token":',
  "{'token':'x'}",
  '{"a":1,}',
  '{"a":01}',
  'nul',
  'token=x',
  '{"a":"\n"}',
  '{}{}',
]
const NOT_OBJECTS = ['null', 'true', '0', '12345678901234567890', '""', '"text"', '[]', '[{}]']

/** Every wrong body there is a name for. */
export function wrongBodies(subject: Subject): WrongBody[] {
  const fields = fieldsOf(plain(subject.schema))
  return [...fields.flatMap((field) => wrongField(subject, field)), ...brokenBodies()]
}

/** Bodies that are not a JSON object, for any endpoint. */
function brokenBodies(): WrongBody[] {
  const broken = (kind: WrongBody['kind']) => (text: string) => ({ what: `body is ${text}`, field: '', kind, text })
  return [...NOT_JSON.map(broken('not JSON')), ...NOT_OBJECTS.map(broken('not an object'))]
}

/** Any JSON value whatever in the place of one field, such that the schema refuses the body. */
export function anyWrongBody(subject: Subject): fc.Arbitrary<WrongBody> {
  const compiled = Compile(subject.schema)
  const fields = fieldsOf(plain(subject.schema))
  return fc
    .record({ field: fc.constantFrom(...fields), text: fc.json({ maxDepth: 3 }) })
    .map(({ field, text }): WrongBody => {
      const value: Json = JSON.parse(text)
      return { ...named(field.path, text), kind: 'value', text: JSON.stringify(put(subject.good, field.path, value)) }
    })
    .filter(({ text }) => !compiled.Check(JSON.parse(text)))
}

/** The methods an endpoint does not take. */
export function wrongMethods(taken: readonly string[]): string[] {
  return ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter((method) => !taken.includes(method))
}

interface Field {
  path: string[]
  schema: Plain
}

/** All fields, those inside objects and the first of a list too. */
function fieldsOf(schema: Plain, path: string[] = []): Field[] {
  const own = path.length === 0 ? [] : [{ path, schema }]
  const inner = Object.entries(schema.properties ?? {}).flatMap(([key, one]) => fieldsOf(one, [...path, key]))
  return [...own, ...inner, ...(schema.items ? fieldsOf(schema.items, [...path, '0']) : [])]
}

function wrongField({ schema, good, bodyLimitBytes }: Subject, { path, schema: field }: Field): WrongBody[] {
  const compiled = Compile(schema)
  const body = (kind: WrongBody['kind'], said: string, value: Json | undefined): WrongBody => ({
    ...named(path, said),
    kind,
    text: JSON.stringify(put(good, path, value)),
  })
  const values = [...ANY_TYPE, ...beyond(field)].map((value) => body('value', say(value), value))
  const isElement = path.at(-1) === '0'
  const missing = isElement ? [] : [body('missing', 'missing', undefined)]
  const refused = [...values, ...missing].filter(({ text }) => !compiled.Check(JSON.parse(text)))
  const isText = [field, ...(field.anyOf ?? [])].some(({ type }) => type === 'string')
  if (!isText) return refused
  const huge = body('huge', 'huge', 'x'.repeat(bodyLimitBytes))
  return [...refused, huge, body('control characters', 'full of control characters', CONTROL_CHARACTERS)]
}

/** Just past every bound the field has. */
function beyond({ maxLength, minimum, maximum, maxItems }: Plain): Json[] {
  return [
    ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1)]),
    ...(minimum === undefined ? [] : [minimum - 1]),
    ...(maximum === undefined ? [] : [maximum + 1]),
    ...(maxItems === undefined ? [] : [Array.from({ length: maxItems + 1 }, () => ({}))]),
  ]
}

/** `body` with the value at `path` replaced; undefined takes it out. */
function put(body: Json, [key, ...rest]: string[], value: Json | undefined): Json {
  if (key === undefined) return value ?? null
  if (Array.isArray(body)) return body.map((item, index) => (String(index) === key ? put(item, rest, value) : item))
  const fields: Record<string, Json> = { ...Object(body) }
  if (rest.length === 0 && value === undefined) {
    delete fields[key]
    return fields
  }
  return { ...fields, [key]: put(fields[key] ?? {}, rest, value) }
}

function named(path: string[], said: string): Pick<WrongBody, 'what' | 'field'> {
  const field = path.join('.')
  return { field, what: `${field} is ${said}` }
}

function say(value: Json): string {
  const text = JSON.stringify(value)
  return text.length > 40 ? `${text.slice(0, 37)}… (${text.length} characters)` : text
}

/** The schema as plain JSON Schema. */
function plain(schema: TSchema): Plain {
  return JSON.parse(JSON.stringify(schema))
}
