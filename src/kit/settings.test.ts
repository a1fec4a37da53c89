import { describe, expect, test } from 'vitest'
import {
  readAddress,
  readChoice,
  readHttpUrl,
  readInteger,
  readSecret,
  readSettings,
  readSwitch,
  type Setting,
} from './settings.ts'

const SETTINGS = {
  addr: { flag: '--addr', env: 'ADDR', help: 'where', fallback: { host: '127.0.0.1', port: 1 }, read: readAddress },
  hold: { flag: '--hold', env: 'HOLD', help: 'how long', fallback: 30, read: readInteger(1, 100) },
  secret: { env: 'SECRET', help: 'who may', fallback: null, read: readSecret } satisfies Setting<string | null>,
}

describe('readSettings', () => {
  test('gives the fallbacks when nothing is said', () => {
    expect(readSettings(SETTINGS, {}, {})).toEqual({
      values: { addr: { host: '127.0.0.1', port: 1 }, hold: 30, secret: null },
      problems: [],
    })
  })

  test('takes the environment, and the flag before it', () => {
    const { values } = readSettings(SETTINGS, { hold: '5' }, { HOLD: '7', ADDR: '0.0.0.0:80', SECRET: 'abc' })
    expect(values).toEqual({ addr: { host: '0.0.0.0', port: 80 }, hold: 5, secret: 'abc' })
  })

  test('takes what has no flag from the environment alone', () => {
    expect(readSettings(SETTINGS, { secret: 'flag' }, {}).values.secret).toBe(null)
    expect(readSettings(SETTINGS, { secret: 'flag' }, { SECRET: 'env' }).values.secret).toBe('env')
  })

  test('tells all problems at once, each by where it was said', () => {
    const { problems } = readSettings(SETTINGS, { hold: 'soon' }, { ADDR: 'nowhere', SECRET: ' ' })
    expect(problems).toEqual([
      'ADDR must be host:port, such as 127.0.0.1:8765, not "nowhere"',
      '--hold must be a whole number from 1 to 100, not "soon"',
      'SECRET is set but empty; give it a value or leave it out',
    ])
  })
})

test.each([
  ['127.0.0.1:8765', '127.0.0.1', 8765],
  ['hub.example:0', 'hub.example', 0],
  [':8080', '127.0.0.1', 8080],
  ['8080', '127.0.0.1', 8080],
  ['[::1]:80', '::1', 80],
])('%s is an address', (text, host, port) => {
  expect(readAddress(text)).toEqual({ host, port })
})

test.each(['', 'host', 'host:', 'host:65536', 'host:-1', 'http://host:80', '::1:80', 'a b:80', 'host:8 0'])(
  '%j is no address',
  (text) => {
    expect(() => readAddress(text)).toThrow(/host:port/)
  },
)

test('a whole number is read within its bounds', () => {
  const read = readInteger(0, 1_000)
  expect([read('0'), read(' 17 '), read('1000')]).toEqual([0, 17, 1_000])
  for (const text of ['', '-1', '1001', '1.5', '1e2', '0x10', 'ten', '9'.repeat(20)]) {
    expect(() => read(text), text).toThrow(/whole number from 0 to 1000/)
  }
})

test('yes and no are read in the usual words', () => {
  for (const text of ['1', 'true', 'YES', 'on']) expect(readSwitch(text)).toBe(true)
  for (const text of ['0', 'false', 'No', 'off', '']) expect(readSwitch(text)).toBe(false)
  expect(() => readSwitch('maybe')).toThrow(/true or false/)
})

test('one of a few words is read in any case', () => {
  const read = readChoice(['debug', 'info'])
  expect(read('INFO')).toBe('info')
  expect(() => read('loud')).toThrow('must be one of debug, info, not "loud"')
})

test('an http address loses its last slash and must not hold a password', () => {
  expect(readHttpUrl('https://host/base//')).toBe('https://host/base')
  for (const text of ['', 'host', 'ftp://host', 'http://'])
    expect(() => readHttpUrl(text), text).toThrow(/https:\/\/host/)
  expect(() => readHttpUrl('http://me:secret@host')).toThrow(/^must not hold a user name or password$/)
})

test('a secret is cut of space around it and never repeated in a problem', () => {
  expect(readSecret(' abc ')).toBe('abc')
  for (const text of ['se cret', 'sécret', 'se\ncret']) {
    expect(() => readSecret(text)).toThrow(/printable ASCII/)
    expect(() => readSecret(text)).not.toThrow(text)
  }
})
