import { AppError } from '../../kit/errors.ts'
import type { Hub } from '../hub.ts'

const MAX_NAME = 64
const CONTROL = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

/** A client's name as it is kept. */
export function validName(name: string): string {
  const trimmed = validText('name', name.trim().normalize('NFC'))
  // Counted as the schemas count: an emoji is one character.
  if (trimmed === '' || [...trimmed].length > MAX_NAME) {
    throw new AppError('bad_request', `name must have 1 to ${MAX_NAME} characters.`, { details: { field: 'name' } })
  }
  if (!/[\p{L}\p{N}\p{P}\p{S}]/u.test(trimmed)) {
    throw new AppError('bad_request', 'name must hold something that can be seen.', { details: { field: 'name' } })
  }
  if (trimmed === '.' || trimmed === '..') {
    throw new AppError('bad_request', 'name must not be "." or "..": it could not stand in a path.', {
      details: { field: 'name' },
    })
  }
  return trimmed
}

/** A text without control characters. */
export function validText(field: string, text: string): string {
  if (CONTROL.test(text))
    throw new AppError('bad_request', `${field} must not hold control characters.`, { details: { field } })
  return text
}

/** A client for an account that is not there would never hear a thing: most likely a slip. */
export function knownAccount({ accounts }: Hub, name: string | null): string | null {
  if (name === null || accounts.get(name) !== undefined) return name
  const names = accounts.all().map((one) => one.name)
  throw new AppError('bad_request', `account must be one of ${names.join(', ')}, or null for all of them.`, {
    details: { field: 'account' },
  })
}
