import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { AppError } from './errors.ts'

/** Checks a value from outside against a schema: the value with its type, or a `bad_request` that names the field. */
export type Check<T> = (value: unknown) => T

/** Compiles a schema once; the returned function is cheap to call. */
export function checker<S extends TSchema>(schema: S, what = 'body'): Check<Static<S>> {
  const compiled = Compile(schema)
  return (value) => {
    if (compiled.Check(value)) return value
    const { field, problem } = describe(compiled.Errors(value)[0], what)
    throw new AppError('bad_request', `${field} ${problem}.`, { details: { field } })
  }
}

interface SchemaError {
  keyword: string
  instancePath: string
  params: object
  message: string
}

function describe(error: SchemaError | undefined, what: string): { field: string; problem: string } {
  if (error === undefined) return { field: what, problem: 'is not valid' }
  const path = error.instancePath.split('/').slice(1)
  const missing = error.keyword === 'required' && 'requiredProperties' in error.params && error.params.requiredProperties
  if (Array.isArray(missing)) return { field: [...path, String(missing[0])].join('.'), problem: 'is missing' }
  const problem = error.keyword === 'pattern' ? 'has characters that are not allowed' : error.message
  return { field: path.join('.') || `The ${what}`, problem: problem.replace(/^must be (?=[aeio])/, 'must be an ').replace(/^must be (?=string|number|boolean)/, 'must be a ') }
}
