import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AppError } from './errors.ts'
import { jsonLog, LOG_LEVELS, type LogLevel, redact, silentLog } from './log.ts'

function testLog(level: LogLevel = 'debug') {
  let text = ''
  const write = (chunk: string) => {
    text += chunk
  }
  const log = jsonLog(level, { write })
  return {
    log,
    text: () => text,
    lines: () =>
      text
        .split('\n')
        .filter(Boolean)
        .map((line): Record<string, unknown> => JSON.parse(line)),
  }
}

const hex = (length: number) => fc.stringMatching(new RegExp(`^[0-9a-f]{${length}}$`))

test('each event is one JSON line with its time, its text and its fields', () => {
  const { log, text, lines } = testLog()
  log.info('message queued', { client: 'ann\nbob', seq: 3, first: true, gone: null, absent: undefined })
  log.warn('slow')
  expect(text().endsWith('\n')).toBe(true)
  expect(lines()).toHaveLength(2)
  expect(lines()[0]).toMatchObject({ msg: 'message queued', client: 'ann\nbob', seq: 3, first: true, gone: null })
  expect(lines()[0]).not.toHaveProperty('absent')
  expect(lines()[0]?.time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

test('any text stays in one line', () => {
  const { log, lines } = testLog()
  let written = 0
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (message, value) => {
      log.info(message, { value })
      written += 1
    }),
  )
  expect(lines()).toHaveLength(written)
})

test.each(LOG_LEVELS)('at level %s it writes that level and what is above it', (level) => {
  const { log, lines } = testLog(level)
  log.debug('debug')
  log.info('info')
  log.warn('warn')
  log.error('error')
  expect(lines().map(({ msg }) => msg)).toEqual(
    LOG_LEVELS.slice(LOG_LEVELS.indexOf(level)).filter((one) => one !== 'silent'),
  )
})

test('a field does not stand beside one of the log itself under the same name', () => {
  const { log, text } = testLog()
  log.info('text', { level: 'high', time: 'noon', msg: 'mine' })
  expect(text().match(/"(level|time|msg)":/g)).toHaveLength(3)
  expect(text()).toContain('"msg_":"mine"')
})

test('the silent log takes everything and says nothing', () => {
  for (const level of ['debug', 'info', 'warn', 'error'] as const) expect(silentLog[level]('text')).toBeUndefined()
})

describe('no token survives', () => {
  test('in a text, in a field, or in an error with its stack, cause and properties', () => {
    const { log, text } = testLog()
    fc.assert(
      fc.property(hex(32), fc.constantFrom('', ' ', '"', 'x', ':', '/'), (digits, next) => {
        const token = `vhub_${digits}`
        const cause = new Error(`for ${token}${next}`)
        const error = Object.assign(new AppError('failed', `at ${next}${token}`, { cause, details: { token } }), {
          request: { headers: { authorization: `Bearer ${token}` } },
        })
        log.info(`text ${token}`, { field: `${next}${token}${next}`, header: `Bearer ${token}` })
        log.error('failed', { error, field: token })
        log.error('failed', { error: `thrown ${token}`, object: { deep: token }, inner: new Error(token) })
        expect(text()).not.toContain(digits.slice(4))
      }),
    )
  })

  test('whatever it looks like, when it stands behind a bearer or in a URL', () => {
    const { log, text } = testLog()
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9._~+/=@:-]{12,40}$/), (secret) => {
        log.warn('refused', {
          header: `authorization: bearer  ${secret}`,
          json: `{"authorization":"Bearer ${secret}"}`,
        })
        log.warn('refused', {
          url: `http://host/path?a=1&access_token=${secret}&b=2`,
          bot: `0a1b2c3d4e5f@im.bot:${secret}`,
        })
        expect(text()).not.toContain(secret)
      }),
    )
  })

  test('in a field whose name says that it is one', () => {
    const { log, lines } = testLog()
    log.info('text', { contextToken: 'abc', Authorization: 'abc', cookie: 'abc', tokens: 3 })
    expect(lines()[0]).toMatchObject({ contextToken: '…', Authorization: '…', cookie: '…', tokens: 3 })
  })

  test('and what is left shows which one it was', () => {
    expect(redact('with vhub_0123456789abcdef0123456789abcdef.')).toBe('with vhub_0123….')
    expect(redact('Authorization: Bearer abc, more')).toBe('Authorization: Bearer … more')
    expect(redact('nothing here')).toBe('nothing here')
  })
})

test('an error is told with its type, text, code, stack and causes', () => {
  const { log, lines } = testLog()
  const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
  log.error('upstream failed', { error: new AppError('upstream_failed', 'No answer.', { cause }), tries: 2 })
  expect(lines()[0]).toMatchObject({
    msg: 'upstream failed',
    tries: 2,
    error: {
      type: 'AppError',
      code: 'upstream_failed',
      message: 'No answer.',
      stack: expect.stringContaining('log.test.ts'),
      cause: { message: 'refused', code: 'ECONNREFUSED' },
    },
  })
})

test('an error that is its own cause is told and ends', () => {
  const { log, lines } = testLog()
  const error = new Error('round')
  error.cause = error
  log.error('failed', { error })
  expect(lines()).toHaveLength(1)
})
