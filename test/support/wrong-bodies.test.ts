import fc from 'fast-check'
import { Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { expect, test } from 'vitest'
import { anyWrongBody, type Subject, wrongBodies, wrongMethods } from './wrong-bodies.ts'

const schema = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 3 }),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 })),
  list: Type.Array(Type.Object({ on: Type.Boolean() }), { minItems: 1, maxItems: 2 }),
})
const subject: Subject = { schema, good: { name: 'ann', list: [{ on: true }] }, bodyLimitBytes: 100 }

test('each field is wrong in turn: missing, null, of another type, past each bound, huge', () => {
  const kinds = ['value', 'missing']
  const bodies = wrongBodies(subject).filter(({ kind }) => kinds.includes(kind))
  const said = bodies.map(({ what }) => what)
  for (const what of [
    'name is missing',
    'name is null',
    'name is 0',
    'name is ""',
    'name is "xxxx"',
    'count is 0',
    'count is 3',
    'count is 1.5',
    'count is "some text"',
    'list is missing',
    'list is []',
    'list is [{},{},{}]',
    'list.0 is null',
    'list.0.on is missing',
    'list.0.on is "some text"',
  ])
    expect(said).toContain(what)
  const compiled = Compile(schema)
  expect(bodies.filter(({ text }) => compiled.Check(JSON.parse(text)))).toEqual([])
})

test('what may be left out is not called wrong when it is', () => {
  expect(wrongBodies(subject).map(({ what }) => what)).not.toContain('count is missing')
})

test('huge bodies pass the limit, broken ones are not JSON, others are no object', () => {
  for (const { kind, text } of wrongBodies(subject)) {
    if (kind === 'huge') expect(text.length).toBeGreaterThan(subject.bodyLimitBytes)
    if (kind === 'not JSON') expect(() => JSON.parse(text)).toThrow(SyntaxError)
    if (kind === 'not an object') expect(Compile(Type.Object({})).Check(JSON.parse(text))).toBe(false)
  }
})

test('chance finds bodies that the schema refuses, and nothing else', () => {
  const compiled = Compile(schema)
  fc.assert(fc.property(anyWrongBody(subject), ({ text }) => !compiled.Check(JSON.parse(text))))
})

test('a wrong method is every one but those that are taken', () => {
  expect(wrongMethods(['POST'])).toEqual(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
})
