import { AppError } from '../kit/errors.ts'

/** A `bad_request` that names the field, for what a schema cannot say. */
export function wrongField(field: string, problem: string): AppError {
  return new AppError('bad_request', `${field} ${problem}.`, { details: { field } })
}
