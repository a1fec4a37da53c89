import { Type } from 'typebox'
import { expect, test } from 'vitest'
import { AppError } from './errors.ts'
import { checker } from './schema.ts'

const check = checker(
  Type.Object({
    name: Type.String({ minLength: 1, maxLength: 3, pattern: '^[^\\x00-\\x1f]*$' }),
    count: Type.Optional(Type.Integer({ minimum: 1 })),
    kind: Type.Optional(Type.Union([Type.Literal('text'), Type.Literal('image')])),
    only: Type.Optional(Type.Literal('text')),
    level: Type.Optional(Type.Enum(['low', 'high'])),
    label: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    items: Type.Optional(Type.Array(Type.Object({ 'a/b~c': Type.String() }))),
    strict: Type.Optional(Type.Object({ on: Type.Boolean() }, { additionalProperties: false })),
  }),
)

function refusal(run: () => unknown): { message: string; field: unknown } {
  try {
    run()
  } catch (error) {
    if (error instanceof AppError) return { message: error.message, field: error.details?.field }
    throw error
  }
  throw new Error('it was accepted')
}

test('a value that fits comes back as it is, with what the schema does not know', () => {
  const value = { name: 'ann', extra: 1 }
  expect(check(value)).toBe(value)
})

test.each([
  ['nothing', undefined, 'body', 'The body must be an object.'],
  ['null', null, 'body', 'The body must be an object.'],
  ['a list', [], 'body', 'The body must be an object.'],
  ['a missing field', {}, 'name', 'name is missing.'],
  ['a null field', { name: null }, 'name', 'name must be a string.'],
  ['a field of the wrong type', { name: 5 }, 'name', 'name must be a string.'],
  ['an empty field', { name: '' }, 'name', 'name must not be empty.'],
  ['a long field', { name: 'long' }, 'name', 'name must not have more than 3 characters.'],
  ['a control character', { name: 'a\n' }, 'name', 'name has characters that are not allowed.'],
  ['a number as text', { name: 'a', count: '1' }, 'count', 'count must be an integer.'],
  ['a small number', { name: 'a', count: 0 }, 'count', 'count must be >= 1.'],
  ['an unknown kind', { name: 'a', kind: 'x' }, 'kind', 'kind must be one of "text", "image".'],
  ['a wrong constant', { name: 'a', only: 'x' }, 'only', 'only must be "text".'],
  ['a wrong level', { name: 'a', level: 'x' }, 'level', 'level must be one of "low", "high".'],
  ['none of several types', { name: 'a', label: 1 }, 'label', 'label must be a string.'],
  ['an object for a list', { name: 'a', items: {} }, 'items', 'items must be an array.'],
  ['a field missing inside', { name: 'a', items: [{}] }, 'items.0.a/b~c', 'items.0.a/b~c is missing.'],
  ['a wrong field inside', { name: 'a', items: [{ 'a/b~c': 1 }] }, 'items.0.a/b~c', 'items.0.a/b~c must be a string.'],
  ['a boolean as text', { name: 'a', strict: { on: 'yes' } }, 'strict.on', 'strict.on must be a boolean.'],
  [
    'an unknown field',
    { name: 'a', strict: { on: true, off: 1 } },
    'strict.off',
    'strict.off is not a field that is known here.',
  ],
])('%s is refused with the name of the field', (_what, value, field, message) => {
  expect(refusal(() => check(value))).toEqual({ message, field })
})

test('the refusal is a bad_request and does not repeat the value', () => {
  const run = () => check({ name: 'vhub_secret' })
  expect(run).toThrow(expect.objectContaining({ code: 'bad_request' }))
  expect(refusal(run).message).not.toContain('vhub')
})

test('what is checked can have another name than body', () => {
  expect(refusal(() => checker(Type.Object({}), 'query')(1))).toEqual({
    message: 'The query must be an object.',
    field: 'query',
  })
})
