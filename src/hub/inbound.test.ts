import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { parseLossless } from '../kit/lossless-json.ts'
import { type Inbound, readInbound, replaceText, specJson } from './inbound.ts'

const NOW = 1_800_000_000_999
const USER = 'Ann_X@im.wechat'

describe('content', () => {
  const text = (words: unknown) => ({ type: 1, text_item: { text: words } })
  const image = { type: 2, image_item: {} }
  const voice = (words: unknown) => ({ type: 3, voice_item: { text: words, playtime: 1_000 } })

  verifies(['relay:message:content', 'relay:message:msg-type'], () => {
    expect(read({ item_list: [text('first'), text('second')] })).toMatchObject({ content: 'first', msgType: 'text' })
    expect(read({ item_list: [image, text('caption')] })).toMatchObject({ content: 'caption', msgType: 'text' })
    expect(read({ item_list: [voice('spoken'), text('typed')] })).toMatchObject({ content: 'typed', text: 'typed' })
    const odd = ' \u0000\t"\\ \ud83d\ude00 \u2028 </script>\n'
    expect(read({ item_list: [text(odd)] })).toMatchObject({ content: odd, msgType: 'text' })
  })

  verifies('relay:message:voice-transcript', () => {
    expect(read({ item_list: [voice('spoken')] })).toMatchObject({ content: 'spoken', msgType: 'text', text: null })
    expect(read({ item_list: [image, voice('spoken')] })).toMatchObject({ content: 'spoken', msgType: 'text' })
  })

  verifies(['relay:message:media-label', 'relay:message:media-type'], () => {
    const label = (item: unknown) => {
      const { content, msgType } = read({ item_list: [item] })
      return [content, msgType]
    }
    expect(label(image)).toEqual(['[image]', 'image'])
    expect(label(voice(''))).toEqual(['[voice]', 'voice'])
    expect(label(voice(undefined))).toEqual(['[voice]', 'voice'])
    expect(label({ type: 4, file_item: {} })).toEqual(['[file]', 'file'])
    expect(label({ type: 4, file_item: { file_name: 'a].pdf' } })).toEqual(['[file: a].pdf]', 'file'])
    expect(label({ type: 4, file_item: { file_name: 5 } })).toEqual(['[file]', 'file'])
    expect(label({ type: 5 })).toEqual(['[video]', 'video'])
  })

  test('what has neither text nor a known medium still has words', () => {
    for (const item_list of [[], [{}], [{ type: 99 }], [{ type: '2' }], undefined, null]) {
      expect(read({ item_list })).toMatchObject({ content: '[message]', msgType: 'text', text: null })
    }
  })

  test('a text item whose text is no string is looked past', () => {
    for (const words of [null, 5, {}, [], true, undefined]) {
      expect(read({ item_list: [text(words), text('real')] })).toMatchObject({ content: 'real', text: 'real' })
      expect(read({ item_list: [{ type: 1, text_item: words }, image] })).toMatchObject({ content: '[image]' })
    }
  })
})

describe('sender and time', () => {
  verifies('relay:message:from-user', () => {
    expect(read({}).userId).toBe(USER)
    expect(JSON.parse(specJson(read({}))).from_user).toBe(USER)
  })

  verifies('relay:message:timestamp', () => {
    expect(read({ create_time_ms: 1_700_000_000_999 }).timestamp).toBe(1_700_000_000)
    expect(read({ create_time_ms: 1_700_000_000_000 }).timestamp).toBe(1_700_000_000)
  })

  test('without a usable time of writing, the time of arrival counts', () => {
    for (const create_time_ms of [undefined, null, 0, -5, '1700000000000', [], {}]) {
      expect(read({ create_time_ms }).timestamp).toBe(1_800_000_000)
    }
  })

  test('a message from a bot is told from a user’s', () => {
    expect(read({ message_type: 2 }).fromBot).toBe(true)
    for (const message_type of [1, 0, '2', null, undefined]) expect(read({ message_type }).fromBot).toBe(false)
  })
})

describe('specJson', () => {
  verifies('relay:message:five-fields', 'holds the fields of the spec but the context token, and no other', () => {
    const inbound = read({ create_time_ms: 5_000, item_list: [{ type: 1, text_item: { text: 'hi' } }], extra: 1 })
    expect(JSON.parse(specJson(inbound))).toEqual({ from_user: USER, content: 'hi', msg_type: 'text', timestamp: 5 })
  })

  test('starts with a brace and has a member, so that the context token can be put in front', () => {
    expect(specJson(read({}))).toMatch(/^\{"from_user":/)
  })
})

describe('what cannot be read', () => {
  test.each([
    ['"not an object"', 'not an object'],
    ['null', 'not an object'],
    ['[]', 'not an object'],
    ['7', 'not an object'],
    ['{}', 'no from_user_id'],
    ['{"from_user_id":""}', 'no from_user_id'],
    ['{"from_user_id":null}', 'no from_user_id'],
    ['{"from_user_id":5}', 'no from_user_id'],
    [`{"from_user_id":"${'x'.repeat(257)}"}`, 'no from_user_id'],
    ['{"from_user_id":"a","item_list":{}}', 'item_list is no list'],
    ['{"from_user_id":"a","item_list":"x"}', 'item_list is no list'],
    ['{"from_user_id":"a","item_list":[{},null]}', 'item_list holds something that is no item'],
    ['{"from_user_id":"a","item_list":[[]]}', 'item_list holds something that is no item'],
  ])('%s', (source, problem) => {
    expect(readInbound(source, NOW)).toBe(problem)
  })

  test('any JSON at all is read or refused, never a throw', () => {
    const message = fc.record(
      {
        from_user_id: fc.oneof(fc.string(), fc.jsonValue()),
        item_list: fc.oneof(fc.array(fc.oneof(item(), fc.jsonValue())), fc.jsonValue()),
        message_id: fc.jsonValue(),
        create_time_ms: fc.jsonValue(),
        seq: fc.jsonValue(),
        context_token: fc.jsonValue(),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.oneof(message, fc.jsonValue()), (value) => {
        const inbound = readInbound(JSON.stringify(value), NOW)
        if (typeof inbound === 'string') return
        expect(inbound.userId).not.toBe('')
        expect(Object.keys(JSON.parse(specJson(inbound)))).toEqual(['from_user', 'content', 'msg_type', 'timestamp'])
        expect(Number.isInteger(inbound.timestamp)).toBe(true)
      }),
    )
  })
})

describe('what was parsed before', () => {
  const id = fc.oneof(
    fc.constantFrom('0', '-1', '""', '"0"', '"a\\u0041"', 'null', '9007199254740992', '1e3', '1.5'),
    fc.stringMatching(/^[1-9][0-9]{0,24}$/),
    fc.jsonValue().map((value) => JSON.stringify(value)),
  )
  const number = fc.constantFrom('5', '1794776579743', '9007199254740993', '-12345678901234567890', '1e17', '"12"')

  test('need not be parsed again: it reads the same', () => {
    fc.assert(
      fc.property(id, id, number, number, fc.array(item()), (messageId, token, createdMs, seq, items) => {
        const source = `{"seq":${seq}, "message_id" : ${messageId},"from_user_id":"a","context_token":${token},
          "create_time_ms":${createdMs},"item_list":${JSON.stringify(items)}}`
        expect(readInbound(source, NOW, JSON.parse(source))).toEqual(readInbound(source, NOW))
      }),
    )
  })
})

describe('raw', () => {
  verifies(['relay:real-message:spliced', 'relay:real-message:keeps-fields'], () => {
    const source =
      '{ "a":1.50, "b" : 1e3,"message_id":7497484083968569736, "c":"\\u0041\\/", "from_user_id":"x",' +
      '"n":{"svr_id":7497484083968569737 , "unknown":[ 1,{"deep":null} ]},"context_token":"up", "z":-0 }'
    expect(parsed(source).raw).toBe(
      '{"a":1.50,"b" : 1e3,"c":"\\u0041\\/","from_user_id":"x",' +
        '"n":{"svr_id":7497484083968569737 , "unknown":[ 1,{"deep":null} ]},"z":-0}',
    )
  })

  verifies('relay:real-message:own-context-token', 'no spelling of the upstream’s token stays in the text', () => {
    const { raw } = parsed(
      '{"context_token":"one","from_user_id":"x","context\\u005ftoken":"two","context_token":null}',
    )
    expect(raw).toBe('{"from_user_id":"x"}')
  })

  test('a token inside an item is not the message’s and stays', () => {
    const item = '{"type":1,"context_token":"inner","message_id":5}'
    expect(parsed(`{"from_user_id":"x","item_list":[${item}]}`).raw).toContain(item)
  })

  test('is the same value as the source but for the two members, whatever the source', () => {
    const value = fc.dictionary(fc.string(), fc.jsonValue()).map((fields) => ({ ...fields, from_user_id: 'x' }))
    fc.assert(
      fc.property(value, fc.integer({ min: 0, max: 3 }), (fields, indent) => {
        const source = JSON.stringify({ message_id: 1, ...fields, context_token: 'up' }, null, indent)
        const expected: Record<string, unknown> = { ...JSON.parse(source) }
        delete expected.message_id
        delete expected.context_token
        const inbound = readInbound(source, NOW)
        if (typeof inbound !== 'string') expect(JSON.parse(inbound.raw)).toEqual(expected)
      }),
    )
  })
})

describe('upstreamId', () => {
  verifies('relay:real-message:id-digits', 'keeps all digits above 2^53', () => {
    expect(parsed('{"from_user_id":"x","message_id":7497484083968569736}').upstreamId).toBe('7497484083968569736')
    expect(parsed('{"from_user_id":"x","message_id":"7497484083968569736"}').upstreamId).toBe('7497484083968569736')
    expect(parsed('{"from_user_id":"x","message_id":9007199254740993}').upstreamId).toBe('9007199254740993')
    expect(read({ message_id: 12 }).upstreamId).toBe('12')
  })

  test('what is no id is none', () => {
    for (const message_id of [undefined, null, 0, '', '0', {}, [1], true, 'x'.repeat(129)])
      expect(read({ message_id }).upstreamId).toBeNull()
  })
})

describe('quote', () => {
  const quoting = (ref_msg: unknown) => read({ item_list: [{ type: 1, text_item: { text: 'x' }, ref_msg }] }).quote

  test('names the quoted message by its id, to the digit, and by its text', () => {
    const source =
      '{"from_user_id":"x","item_list":[{"ref_msg":{"svr_id":7497484083968569736,"message_item":{"text_item":{"text":"t"}}}}]}'
    expect(parsed(source).quote).toEqual({ upstreamId: '7497484083968569736', text: 't' })
    expect(quoting({ message_item: { msg_id: '12', text_item: { text: 5 } } })).toEqual({ upstreamId: '12' })
    expect(quoting({})).toEqual({})
  })

  test('is null without one', () => {
    for (const reference of [undefined, null, 'x', []]) expect(quoting(reference)).toBeNull()
  })
})

describe('replaceText', () => {
  test('changes the first text and no other byte', () => {
    const raw =
      '{ "x":1.0,"item_list":[ {"type":2},{"text_item":{"a":1 ,"text":"@bob hi","b":2}},{"text_item":{"text":"2"}}]}'
    expect(replaceText(raw, 'hi "you"')).toBe(raw.replace('"@bob hi"', '"hi \\"you\\""'))
  })

  test('is the text that was read: a text that is no string is looked past', () => {
    const raw = '{"from_user_id":"x","item_list":[{"text_item":{"text":null}},{"text_item":{"text":"@bob hi"}}]}'
    expect(parsed(raw).text).toBe('@bob hi')
    expect(replaceText(raw, 'hi')).toBe(raw.replace('"@bob hi"', '"hi"'))
  })

  test('leaves a message without text alone', () => {
    for (const raw of ['{}', '{"item_list":[]}', '{"item_list":null}', '{"item_list":[{"text_item":null},{"type":2}]}'])
      expect(replaceText(raw, 'x')).toBe(raw)
  })

  test('replaces a number that is too long to be one', () => {
    const raw = '{"item_list":[{"text_item":{"text":9007199254740992}}]}'
    expect(replaceText(raw, 'hi')).toBe(raw.replace('9007199254740992', '"hi"'))
  })

  test('what was put in is what is read back, whatever it is', () => {
    const items = fc.array(item(), { minLength: 1 })
    fc.assert(
      fc.property(items, fc.string({ unit: 'binary' }), (item_list, text) => {
        const raw = JSON.stringify({ from_user_id: 'x', item_list })
        const hasText = parsed(raw).text !== null
        const replaced = replaceText(raw, text)
        expect(hasText ? parsed(replaced).text : replaced).toBe(hasText ? text : raw)
      }),
    )
  })
})

function item() {
  const text_item = fc.oneof(fc.record({ text: fc.oneof(fc.string(), fc.jsonValue()) }), fc.jsonValue())
  return fc.record({ type: fc.jsonValue(), text_item, ref_msg: fc.jsonValue() }, { requiredKeys: [] })
}

function read(fields: Record<string, unknown>): Inbound {
  return parsed(JSON.stringify({ from_user_id: USER, ...fields }))
}

function parsed(source: string): Inbound {
  const inbound = readInbound(source, NOW)
  if (typeof inbound === 'string') throw new Error(`${inbound}: ${String(parseLossless(source))}`)
  return inbound
}
