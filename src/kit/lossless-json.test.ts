import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  elementsOf,
  mapStringMembers,
  parseLossless,
  rawElements,
  rawMember,
  spans,
  withMembers,
  withoutMembers,
} from './lossless-json.ts'

const BIG = '7497484083968569736'

/** JSON text as others write it: odd spacing, escapes that were not needed, numbers in every spelling. */
const space = fc.constantFrom('', '', ' ', '\n', '\t\r\n ')
const integer = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }).map(String)
const fraction = fc.tuple(fc.integer(), fc.stringMatching(/^[0-9]{1,25}$/)).map(([whole, part]) => `${whole}.${part}`)
const exponent = fc
  .tuple(fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n }), fc.constantFrom('e', 'E', 'e+', 'e-'), fc.nat(20))
  .map((parts) => parts.join(''))
const quoted = fc
  .oneof(
    fc.string({ unit: 'binary' }),
    fc.stringMatching(/^[0-9]{16,20}$/),
    fc.constantFrom('\\', '"', '\\"', '{"a":1}', '],}'),
  )
  .chain((text) => fc.constantFrom(JSON.stringify(text), escapeAll(text)))
const { value: jsonText } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('null', 'true', 'false', '0', '-0', '{}', '[]', BIG),
    integer,
    fraction,
    exponent,
    quoted,
    tie('list'),
    tie('object'),
  ),
  list: fc
    .tuple(space, fc.array(padded(tie('value')), { maxLength: 5 }))
    .map(([gap, items]) => `[${items.join(',') || gap}]`),
  object: fc
    .tuple(space, fc.array(member(tie('value')), { maxLength: 5 }))
    .map(([gap, items]) => `{${items.join(',') || gap}}`),
}))
const memberList = fc.array(fc.record({ key: fc.string({ unit: 'binary' }), value: jsonText }), { maxLength: 6 })

describe('parseLossless', () => {
  test('keeps the digits of an integer that a double cannot hold', () => {
    expect(parseLossless(`{"message_id":${BIG},"n":[-${BIG},1]}`)).toEqual({ message_id: BIG, n: [`-${BIG}`, 1] })
  })

  test('leaves integers that a double holds as numbers', () => {
    expect(parseLossless('[9007199254740991,-9007199254740991]')).toEqual([9007199254740991, -9007199254740991])
    expect(parseLossless('[9007199254740992,9007199254740993]')).toEqual(['9007199254740992', '9007199254740993'])
  })

  test('leaves fractions, exponents and digits in strings alone', () => {
    const text = `[0.30000000000000004, 1.7976931348623157e308, 12345678901234567.5, 12345678901234567e2, 1e21, "${BIG}", "\\"${BIG}\\\\"]`
    expect(parseLossless(text)).toEqual(JSON.parse(text))
  })

  test('refuses what JSON.parse refuses', () => {
    for (const text of ['', '{', `{"a":${BIG}`, `[${BIG},]`, `0${BIG}`, `+${BIG}`, `${BIG} ${BIG}`, `{${BIG}:1}`]) {
      expect(() => parseLossless(text), text).toThrow(SyntaxError)
    }
  })

  test('a text of many megabytes is no problem', () => {
    const long = 'ä\\"x'.repeat(1_000_000)
    expect(parseLossless(`{"text":"${long}","id":${BIG}}`)).toEqual({ text: JSON.parse(`"${long}"`), id: BIG })
  })

  test('a member called __proto__ is a member like any other', () => {
    const parsed = parseLossless(`{"__proto__":{"admin":true},"id":${BIG}}`)
    expect(Object.keys(Object(parsed))).toEqual(['__proto__', 'id'])
    expect(Object(parsed).admin).toBeUndefined()
  })

  test('is JSON.parse but for integers outside of the safe range, which become their digits', () => {
    fc.assert(fc.property(padded(jsonText), (text) => sameValue(parseLossless(text), JSON.parse(text))))
    fc.assert(
      fc.property(integer, (digits) => {
        const expected = Number.isSafeInteger(Number(digits)) ? Number(digits) : digits
        expect(parseLossless(`{"a":[${digits}]}`)).toEqual({ a: [expected] })
      }),
    )
  })
})

describe('spans', () => {
  test('are the members of an object with decoded names and raw values', () => {
    const text = ' { "a" : 1.0 , "\\u0062\\n" :{ "a":[2] } } '
    expect(spans(text).map(({ key, valueStart, end }) => [key, text.slice(valueStart, end)])).toEqual([
      ['a', '1.0'],
      ['b\n', '{ "a":[2] }'],
    ])
  })

  test('are nothing for what has no members', () => {
    for (const text of ['{}', '[]', ' { } ', '1', '"{}"', 'null']) expect(spans(text)).toEqual([])
  })

  test('can start in the middle of a text', () => {
    const text = '{"msgs":[{"id":1},{"id":2}]}'
    const [list] = spans(text)
    expect(spans(text, list?.valueStart).map(({ valueStart, end }) => text.slice(valueStart, end))).toEqual([
      '{"id":1}',
      '{"id":2}',
    ])
  })

  test('cut any array into exactly the elements it was made of', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(space, jsonText, space), { maxLength: 6 }), (parts) => {
        const text = `[${parts.map((part) => part.join('')).join(',')}]`
        expect(rawElements(text)).toEqual(parts.map(([, value]) => value))
      }),
    )
  })

  test('cut any object into exactly the members it was made of', () => {
    fc.assert(
      fc.property(memberList, fc.boolean(), space, (members, escaped, gap) => {
        const text = objectText(members, { escaped, gap })
        const found = spans(text).map(({ key, valueStart, end }) => ({ key, value: text.slice(valueStart, end) }))
        expect(found).toEqual(members)
      }),
    )
  })
})

describe('rawMember', () => {
  test('is the value as it stands, and the last one where a name stands twice, as in JSON.parse', () => {
    expect(rawMember(`{"id":${BIG}, "x":1.50}`, 'id')).toBe(BIG)
    expect(rawMember('{"x":1.50}', 'x')).toBe('1.50')
    expect(rawMember('{"a":1,"a":2}', 'a')).toBe('2')
    expect(rawMember('{"a":{"b":1}}', 'b')).toBeUndefined()
  })

  test('agrees with JSON.parse for every name of any object', () => {
    fc.assert(
      fc.property(memberList, fc.boolean(), (members, escaped) => {
        const text = objectText(members, { escaped })
        const parsed = new Map(Object.entries(Object(JSON.parse(text))))
        expect(new Set(members.map(({ key }) => key))).toEqual(new Set(parsed.keys()))
        for (const [key, value] of parsed) expect(JSON.parse(rawMember(text, key) ?? '')).toEqual(value)
      }),
    )
  })
})

describe('elementsOf', () => {
  test('are those of the list that has the name, and of the last one where it stands twice', () => {
    expect(elementsOf(`{"a":[1],"b" : [ ${BIG} , {"b":[2]} ] ,"c":"x"}`, 'b')).toEqual([BIG, '{"b":[2]}'])
    expect(elementsOf('{"b":[1,2],"b":[3],"c":[4]}', 'b')).toEqual(['3'])
    expect(elementsOf('{"b":[1,2],"b":[ ]}', 'b')).toEqual([])
    for (const text of ['{"b":7,"c":[1]}', '{"b":{"b":[1]}}', '{"a":[1]}', '{}', '[1]', '"b"'])
      expect(elementsOf(text, 'b'), text).toEqual([])
  })

  test('agree with rawMember and rawElements for every name of any object', () => {
    fc.assert(
      fc.property(memberList, fc.boolean(), space, (members, escaped, gap) => {
        const text = objectText(members, { escaped, gap })
        for (const { key } of members)
          expect(elementsOf(text, key)).toEqual(
            Array.isArray(JSON.parse(rawMember(text, key) ?? '')) ? rawElements(rawMember(text, key) ?? '') : [],
          )
      }),
    )
  })
})

describe('withoutMembers', () => {
  test('takes out what is named, escaped or not, and nothing below', () => {
    const text = `{"context_token":"x", "a": 1.0,"\\u0063ontext_token":2,"b":{"context_token":${BIG}}}`
    expect(withoutMembers(text, new Set(['context_token']))).toBe(`{"a": 1.0,"b":{"context_token":${BIG}}}`)
  })

  test('keeps every other member to the letter', () => {
    fc.assert(
      fc.property(memberList, fc.boolean(), fc.nat(5), (members, escaped, index) => {
        const removed = new Set(members.filter((_one, at) => at === index).map(({ key }) => key))
        const left = withoutMembers(objectText(members, { escaped, gap: ' ' }), removed)
        const expected = members.filter(({ key }) => !removed.has(key))
        expect(spans(left).map(({ key, start, end }) => [key, left.slice(start, end)])).toEqual(
          expected.map((one) => [one.key, memberText(one, escaped)]),
        )
      }),
    )
  })
})

describe('withMembers', () => {
  test('puts members in front of what is there', () => {
    expect(withMembers('{}', '"a":1')).toBe('{"a":1}')
    expect(withMembers(' { \n} ', '"a":1')).toBe('{"a":1}')
    expect(withMembers(' {"b":2.0} ', '"a":1')).toBe('{"a":1,"b":2.0}')
  })

  test('a token taken out and put in leaves the rest of any message as it was', () => {
    fc.assert(
      fc.property(memberList, fc.string({ unit: 'binary' }), (members, token) => {
        const others = members.filter(({ key }) => key !== 'context_token')
        const text = objectText([...others, { key: 'context_token', value: '"upstream"' }])
        const spliced = withMembers(
          withoutMembers(text, new Set(['context_token'])),
          `"context_token":${JSON.stringify(token)}`,
        )
        expect(spliced).toBe(objectText([{ key: 'context_token', value: JSON.stringify(token) }, ...others]))
      }),
    )
  })
})

/** Every UTF-16 unit as `\uXXXX`. */
function escapeAll(text: string): string {
  return `"${[...Array(text.length).keys()].map((at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`
}

function padded(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(space, text, space).map((parts) => parts.join(''))
}

function member(value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(padded(quoted), padded(value)).map((parts) => parts.join(':'))
}

function memberText({ key, value }: { key: string; value: string }, escaped = false): string {
  return `${escaped ? escapeAll(key) : JSON.stringify(key)}:${value}`
}

function objectText(members: { key: string; value: string }[], { escaped = false, gap = '' } = {}): string {
  return `${gap}{${gap}${members.map((one) => memberText(one, escaped)).join(`${gap},${gap}`)}${gap}}${gap}`
}

/** Equal, where a string of digits may stand for a number that JSON.parse rounded. */
function sameValue(lossless: unknown, plain: unknown): boolean {
  if (typeof plain === 'number' && typeof lossless === 'string') {
    return !Number.isSafeInteger(plain) && /^-?\d+$/.test(lossless) && Number(lossless) === plain
  }
  if (typeof plain !== 'object' || plain === null) return Object.is(lossless, plain)
  const entries = Object.entries(plain)
  return (
    Object.keys(Object(lossless)).length === entries.length &&
    entries.every(([key, value]) => Object.hasOwn(Object(lossless), key) && sameValue(Object(lossless)[key], value))
  )
}

describe('mapStringMembers', () => {
  const keys = new Set(['a', 'b'])

  test('replaces the named members at every depth and leaves the rest to the letter', () => {
    const text =
      '{ "a" : "1", "x":[{"b":"2","a":3,"c":"a"}], "\\u0061":"\\u0034", "d":"\\"a\\":\\"5\\"" , "n":9007199254740993 }'
    const seen: string[] = []
    const mapped = mapStringMembers(text, keys, (value) => {
      seen.push(value)
      return value === '2' ? 'two"' : value
    })
    expect(seen).toEqual(['1', '2', '4'])
    expect(mapped).toBe(text.replace('"b":"2"', '"b":"two\\""'))
  })

  test('any JSON comes out as it was when nothing is changed', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(mapStringMembers(text, new Set(['', 'a', 'key']), (value) => value)).toBe(text)
      }),
    )
  })

  test('does to every depth what a reviver does', () => {
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom('a', 'b', 'x', '"', ':', '\\'),
        fc.integer(),
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('a', 'b', 'c', '"a":'), tie('any'), { maxKeys: 3 }),
      ),
    })).any
    fc.assert(
      fc.property(value, (tree) => {
        const expected = JSON.stringify(tree, (key, inner) =>
          keys.has(key) && typeof inner === 'string' ? `${inner}!` : inner,
        )
        expect(mapStringMembers(JSON.stringify(tree), keys, (text) => `${text}!`)).toBe(expected)
      }),
    )
  })
})
