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
    const { path, problem } = describe(compiled.Errors(value))
    throw new AppError('bad_request', `${path || `The ${what}`} ${problem}.`, { details: { field: path || what } })
  }
}

interface SchemaError {
  keyword: string
  instancePath: string
  params: object
  message: string
}

/** Where the first error is (empty: the value itself), and what is wrong there. The value is not told: it may be a secret. */
function describe(errors: readonly SchemaError[]): { path: string; problem: string } {
  const [first] = errors
  if (first === undefined) return { path: '', problem: 'is not valid' }
  const path = first.instancePath.split('/').slice(1).map(decodePointer)
  const missing =
    first.keyword === 'required' && 'requiredProperties' in first.params && first.params.requiredProperties
  if (Array.isArray(missing)) return { path: [...path, String(missing[0])].join('.'), problem: 'is missing' }
  // A union of constants fails once for each of them.
  const allowed = errors.filter((error) => error.instancePath === first.instancePath).flatMap(allowedValues)
  return { path: path.join('.'), problem: allowed.length > 0 ? `must be ${oneOf(allowed)}` : sayProblem(first) }
}

function sayProblem({ keyword, params, message }: SchemaError): string {
  if (keyword === 'pattern') return 'has characters that are not allowed'
  if (keyword === 'boolean') return 'is not a field that is known here'
  if (keyword === 'minLength' && 'limit' in params && params.limit === 1) return 'must not be empty'
  return message
    .replace(/^must be (?=array|integer|object)/, 'must be an ')
    .replace(/^must be (?=string|number|boolean)/, 'must be a ')
}

function allowedValues({ params }: SchemaError): unknown[] {
  if ('allowedValue' in params) return [params.allowedValue]
  return 'allowedValues' in params && Array.isArray(params.allowedValues) ? params.allowedValues : []
}

function oneOf(values: readonly unknown[]): string {
  const texts = values.map((value) => JSON.stringify(value))
  return texts.length === 1 ? texts.join() : `one of ${texts.join(', ')}`
}

function decodePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}
