import type { TSchema } from 'typebox'
import type { Dice } from '../support/dice.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** What JSON Schema says of a value, as far as it matters here. */
interface Plain {
  type?: string
  properties?: Record<string, Plain>
  required?: string[]
  items?: Plain
  anyOf?: Plain[]
  enum?: Json[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
}

/** Texts that somebody might put where they do harm: in logs, metrics, headers, paths, queries, terminals, templates. */
export const NASTY_TEXTS: readonly [string, ...string[]] = [
  '',
  ' ',
  '\u0000',
  'a\r\nSet-Cookie: fuzz=1',
  'x"} 1\nfuzz_injected_total 1\n',
  '\n{"level":60,"time":"now","msg":"fuzz injected"}\n',
  '\u001b[2J\u001b[31mred',
  '\u202eright to left',
  '\ud800',
  '\u2028\u2029\u0085',
  '😀'.repeat(50),
  'e\u0301'.repeat(40),
  '../../../../etc/passwd',
  '..\\..\\windows',
  '%2e%2e%2f%00',
  "'; drop table clients; --",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: somebody may try it
  '${7*7}{{7*7}}<%= 7 %>',
  '<script>alert(1)</script>',
  '__proto__',
  'constructor',
  'toString',
  '-1',
  '0x10',
  '1e309',
  '9'.repeat(400),
  'x'.repeat(2_000),
  'x'.repeat(70_000),
]
const NASTY_VALUES: readonly [Json, ...Json[]] = [
  null,
  true,
  0,
  -0,
  -1,
  1.5,
  2 ** 53,
  -(2 ** 63),
  1e300,
  [],
  {},
  [[[[[]]]]],
  { a: { b: { c: {} } } },
  ['x', 1, null],
]
/** Bodies that are no JSON, or JSON of a kind that parsers stumble over. */
const ODD_BODIES: readonly [string, ...string[]] = [
  '',
  '{',
  '}',
  'null',
  '[]',
  '"text"',
  '12345678901234567890123',
  '{"a":1,"a":2}',
  '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}}}',
  '{"name":NaN}',
  '\ufeff{}',
  '{"text":"\ud800"}',
  '[1,2,',
  '{"a":01}',
  'a=b&c=d',
  '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
  `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
  `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
]

/** A body's bytes: as the schema wants it, or wrong in one of many ways. */
export function anyBody(schema: TSchema | undefined, dice: Dice): Buffer {
  const plain: Plain = schema === undefined ? { type: 'object' } : JSON.parse(JSON.stringify(schema))
  const kind = dice.below(10)
  if (kind < 4) return Buffer.from(JSON.stringify(valueBy(plain, dice, 0)))
  if (kind < 8) return Buffer.from(JSON.stringify(valueBy(plain, dice, 0.3)))
  if (kind === 8) return Buffer.from(dice.pick(ODD_BODIES))
  return dice.chance(0.5) ? Buffer.from([0xff, 0xfe, 0x7b, 0x7d, 0xc0]) : Buffer.alloc(dice.pick([10, 2_000_000]), 0x20)
}

/** A value by the schema; so often out of one something else stands in its place. */
function valueBy(schema: Plain, dice: Dice, wrong: number): Json {
  if (dice.chance(wrong)) return dice.chance(0.5) ? dice.pick(NASTY_VALUES) : dice.pick(NASTY_TEXTS)
  if (schema.anyOf !== undefined) return valueBy(schema.anyOf[dice.below(schema.anyOf.length)] ?? {}, dice, wrong)
  if (schema.enum !== undefined) return schema.enum[dice.below(schema.enum.length)] ?? null
  switch (schema.type) {
    case 'object':
      return objectOf(schema, dice, wrong)
    case 'array':
      return Array.from({ length: dice.below(4) }, () => valueBy(schema.items ?? {}, dice, wrong))
    case 'string':
      return textOf(schema, dice)
    case 'integer':
      return Math.floor(numberOf(schema, dice))
    case 'number':
      return numberOf(schema, dice)
    case 'boolean':
      return dice.chance(0.5)
    default:
      return null
  }
}

function objectOf({ properties = {}, required = [] }: Plain, dice: Dice, wrong: number): Json {
  const fields = Object.entries(properties).filter(([name]) => required.includes(name) || dice.chance(0.5))
  const object: Record<string, Json> = Object.fromEntries(
    fields.map(([name, field]) => [name, valueBy(field, dice, wrong)]),
  )
  if (dice.chance(0.1)) object[dice.pick(NASTY_TEXTS)] = dice.pick(NASTY_VALUES)
  return object
}

/** Within its bounds or just past them. */
function textOf({ minLength = 0, maxLength = 40 }: Plain, dice: Dice): string {
  if (dice.chance(0.3)) return dice.pick(NASTY_TEXTS)
  const length = dice.pick([minLength, Math.min(maxLength, 12), maxLength, maxLength + 1])
  return 'abc 123 '.repeat(Math.ceil(Math.min(length, 300_000) / 8)).slice(0, length)
}

function numberOf({ minimum = 0, maximum = 1_000 }: Plain, dice: Dice): number {
  return dice.pick([minimum, maximum, minimum - 1, maximum + 1, minimum + dice.roll() * (maximum - minimum)])
}
