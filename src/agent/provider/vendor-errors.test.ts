import { expect, test } from 'vitest'
import { toProviderError } from './vendor-errors.ts'

const PARTY = { vendor: 'acme', keyNames: ['ACME_KEY', 'OTHER_KEY'], secrets: ['hunter2'] }
const of = (error: unknown, now = 0) => toProviderError(error, PARTY, now)

test('a key never enters a message, whether it is ours, looks like one, or stands in an address', () => {
  const texts = [
    'bad hunter2 here',
    'bad sk-proj-abc123def456 here',
    'bad sk-abc1***********9xyz here',
    'bad AIzaSyA1234567890abcdef here',
    'Authorization: Bearer abc.def',
    'POST https://acme.example/v1/chat?key=topsecret&x=1 failed',
    'POST https://me:topsecret@acme.example/v1 failed',
  ]
  for (const message of texts) {
    const { message: told } = of({ statusCode: 400, message })
    expect(told).toMatch(/^acme refused the request \(400\): /)
    expect(told).not.toMatch(/hunter2|proj-abc|\*\*\*|AIza|abc\.def|topsecret/)
  }
})

test('the words around it stay', () => {
  const told = of({ statusCode: 400, message: 'skeleton-implementations at https://acme.example/docs/keys\n are  odd' })
  expect(told.message).toBe(
    'acme refused the request (400): skeleton-implementations at https://acme.example/docs/keys are odd',
  )
})

test('a long text is cut', () => {
  expect(of({ statusCode: 500, message: 'x'.repeat(1_000_000) }).message.length).toBeLessThan(400)
})

test('the error itself, which holds the request, is not kept', () => {
  const error = Object.assign(new Error('no'), { statusCode: 500, requestBodyValues: { messages: ['private'] } })
  expect(of(error).cause).toBeUndefined()
})

test('Retry-After is read as seconds, as a date, and not when it is neither', () => {
  const after = (value: string) => of({ statusCode: 429, responseHeaders: { 'retry-after': value } }, 1_000_000)
  expect(after('2').retryAfterMs).toBe(2_000)
  expect(after('0.5').retryAfterMs).toBe(500)
  expect(after(new Date(1_005_000).toUTCString()).retryAfterMs).toBe(5_000)
  expect(after(new Date(0).toUTCString()).retryAfterMs).toBe(0)
  expect(after('soon').retryAfterMs).toBe(null)
})

test('what has neither status nor words is transient when it came from outside, and ours otherwise', () => {
  const network = Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNRESET' } })
  for (const error of [network, new TypeError('terminated'), { type: 'api_error' }, 'garbage', null])
    expect(of(error).kind).toBe('transient')
  for (const error of [new TypeError('x is not a function'), new RangeError('oops')])
    expect(of(error)).toMatchObject({ kind: 'other', message: expect.stringContaining('acme failed: ') })
})

test('a limit on tokens per minute is a rate limit, not an overflow', () => {
  const message = 'Request too large for m on tokens per min (TPM): Limit 30000, Requested 40000. Too many tokens.'
  expect(of({ statusCode: 429, message }).kind).toBe('rate_limited')
})

test('who refuses the key is told with the names to look at', () => {
  expect(of({ statusCode: 401, message: 'hunter2?' }).message).toBe(
    'acme refused the key (401). Check ACME_KEY or OTHER_KEY and what it may use.',
  )
})
