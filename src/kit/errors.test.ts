import { expect, test } from 'vitest'
import { AppError, errorText } from './errors.ts'

test('an AppError carries its code, text, cause, details and pause', () => {
  const cause = new Error('below')
  const error = new AppError('too_many', 'Wait a little.', { cause, details: { field: 'name' }, retryAfterMs: 500 })
  expect(error).toBeInstanceOf(Error)
  expect(error).toMatchObject({ name: 'AppError', code: 'too_many', message: 'Wait a little.', retryAfterMs: 500 })
  expect(error.details).toEqual({ field: 'name' })
  expect(error.cause).toBe(cause)
})

test('an AppError without options has none of them', () => {
  const error = new AppError('not_found', 'There is none.')
  expect(error.details).toBeUndefined()
  expect(error.retryAfterMs).toBeUndefined()
  expect('cause' in error).toBe(false)
})

test.each([
  ['an error', new Error('went wrong'), 'went wrong'],
  ['an error without a text', new TypeError(), 'TypeError'],
  ['several errors without a text of their own', new AggregateError([new Error('a'), 'b']), 'a; b'],
  ['several errors with one', new AggregateError([new Error('a')], 'all failed'), 'all failed'],
  ['a string', 'plain', 'plain'],
  ['nothing', undefined, 'undefined'],
  ['null', null, '[object Null]'],
  ['a symbol', Symbol('s'), 'Symbol(s)'],
  ['an object that cannot be a string', Object.create(null), '[object Object]'],
])('the text of %s can be told', (_what, thrown: unknown, text) => {
  expect(errorText(thrown)).toBe(text)
})
