import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { parseLossless, rawElements, rawMember } from '../kit/lossless-json.ts'
import { type Composed, composeMessage, composeText } from './compose.ts'
import { MAX_TEXT_CHARS } from './split-text.ts'

describe('composeText', () => {
  verifies(
    'relay:sendmessage:flat-body',
    'a text is one call with one text item, as the service’s own client sends it',
    () => {
      const { parts, text, key } = composeText('hello', 'ctx')
      expect(parts.map((part) => JSON.parse(part))).toEqual([
        {
          client_id: expect.stringMatching(/^hub-[0-9a-f-]{36}$/),
          message_type: 2,
          message_state: 2,
          item_list: [{ type: 1, text_item: { text: 'hello' } }],
        },
      ])
      expect({ text, key }).toEqual({ text: 'hello', key: null })
    },
  )

  test('every character arrives as it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (content) => {
        expect(textsIn(composeText(content, 'ctx'))).toEqual([content])
      }),
    )
  })

  verifies('sends:split:long-text', 'a long text becomes parts with an id each', () => {
    const content = 'word '.repeat(1_000)
    const { parts, text } = composeText(content, 'ctx')
    expect(textsIn({ parts }).join('')).toBe(content)
    expect(new Set(parts.map((part) => rawMember(part, 'client_id'))).size).toBe(parts.length)
    expect(text).toBe(content)
  })

  test('the hash tells another text and another context apart, and nothing else', () => {
    const { bodyHash } = composeText('a', 'ctx')
    expect(composeText('a', 'ctx').bodyHash).toBe(bodyHash)
    expect(composeText('b', 'ctx').bodyHash).not.toBe(bodyHash)
    expect(composeText('a', 'other').bodyHash).not.toBe(bodyHash)
    expect(composeText('tx a', 'c').bodyHash).not.toBe(composeText('a', 'ctx ').bodyHash)
  })
})

describe('composeMessage', () => {
  verifies(
    'relay:sendmessage:msg-body',
    'each item is a call of its own, in order, with the message’s other fields',
    () => {
      const items = [
        '{"type":1,"text_item":{"text":"a"}}',
        '{"type":2,"image_item":{"x":1.0}}',
        '{"type":99,"new":[ 1 ]}',
      ]
      const { parts, text, key } = composeMessage(
        `{"to_user_id":"u","client_id":"c","run_id":"r","message_state":1,"item_list":[${items.join(' , ')}],"context_token":"t"}`,
      )
      expect(parts).toEqual([
        `{"client_id":"c","item_list":[${items[0]}],"message_type":2,"run_id":"r","message_state":1}`,
        `{"client_id":"c-2","item_list":[${items[1]}],"message_type":2,"run_id":"r","message_state":1}`,
        `{"client_id":"c-3","item_list":[${items[2]}],"message_type":2,"run_id":"r","message_state":1}`,
      ])
      expect({ text, key }).toEqual({ text: 'a', key: 'c' })
    },
  )

  test('sender, recipient and tokens are the hub’s to fill in, however their names are spelt', () => {
    const { parts } = composeMessage(
      '{"from_user_id":"f","to\\u005fuser_id":"u","context_token":"t","context_token":"t2","item_list":[{}]}',
    )
    expect(Object.keys(JSON.parse(parts.join())).sort()).toEqual([
      'client_id',
      'item_list',
      'message_state',
      'message_type',
    ])
  })

  test('an empty client_id, or one that is no text, is none', () => {
    for (const clientId of ['""', 'null', '5', '{}']) {
      const { key, parts } = composeMessage(`{"client_id":${clientId},"item_list":[{}]}`)
      expect(key).toBeNull()
      expect(rawMember(parts.join(), 'client_id')).toMatch(/^"hub-/)
    }
  })

  test('the client_id is no part of the hash; the recipient and all else are', () => {
    const hash = (members: string) => composeMessage(`{${members}"item_list":[{}]}`).bodyHash
    expect(hash('"client_id":"a",')).toBe(hash('"client_id":"b",'))
    expect(hash('"context_token":"a",')).not.toBe(hash('"context_token":"b",'))
    expect(hash('"x":1,')).not.toBe(hash('"x":1.0,'))
  })

  test('unknown fields keep their spelling and their digits in every part', () => {
    fc.assert(
      fc.property(members(), fc.array(members(), { minLength: 1, maxLength: 4 }), (fields, items) => {
        const { parts } = composeMessage(`{${fields},"item_list":[${items.map((item) => `{${item}}`).join(',')}]}`)
        expect(parts).toHaveLength(items.length)
        for (const [index, part] of parts.entries()) {
          expect(part).toContain(fields)
          expect(rawElements(rawMember(part, 'item_list') ?? '')).toEqual([`{${items[index]}}`])
          expect(() => JSON.parse(part)).not.toThrow()
        }
      }),
    )
  })

  verifies(
    'sends:split:long-text',
    'a long text item is split, and what else the item has goes with each piece',
    () => {
      const text = 'x'.repeat(MAX_TEXT_CHARS * 2 + 1)
      const before = '{"type":1,"big":7497484083968569736,"text_item":{"mark":1.50,"text":"'
      const { parts, text: first } = composeMessage(`{"item_list":[{"type":2},${before}${text}"}}]}`)
      const pieces = parts.slice(1).map((part) => rawElements(rawMember(part, 'item_list') ?? '').join())
      expect(pieces).toHaveLength(3)
      for (const piece of pieces) {
        expect(rawMember(piece, 'big')).toBe('7497484083968569736')
        expect(rawMember(rawMember(piece, 'text_item') ?? '', 'mark')).toBe('1.50')
      }
      expect(textsIn({ parts }).join('')).toBe(text)
      expect(first).toBe(text)
    },
  )

  test('a text item that is none is passed on as it is', () => {
    for (const item of ['{"text_item":null}', '{"text_item":"x"}', '{"text_item":{"text":5}}', '{"text_item":[]}']) {
      const { parts, text } = composeMessage(`{"item_list":[${item}]}`)
      expect(parts.join()).toContain(item)
      expect(text).toBe('')
    }
  })
})

/** Members of an object as JSON text, with numbers spelt in ways that would not survive being read and written. */
function members(): fc.Arbitrary<string> {
  const value = fc.oneof(
    fc.constantFrom('7497484083968569736', '1.50', '1e3', '-0', '"\\u0041\\/"', '{"a" : [ 1,2 ]}', 'null', '""'),
    fc.json({ maxDepth: 2 }),
  )
  const key = fc.string().filter((name) => !TAKEN.has(name))
  return fc
    .array(fc.tuple(key, value), { minLength: 1, maxLength: 4 })
    .map((pairs) => pairs.map(([name, source]) => `${JSON.stringify(name)}:${source}`).join(','))
}

const TAKEN = new Set(['from_user_id', 'to_user_id', 'context_token', 'item_list', 'client_id', 'text_item'])

function textsIn({ parts }: Pick<Composed, 'parts'>): string[] {
  return parts.flatMap((part) =>
    rawElements(rawMember(part, 'item_list') ?? '').flatMap((item) => {
      const text = parseLossless(rawMember(rawMember(item, 'text_item') ?? '{}', 'text') ?? 'null')
      return typeof text === 'string' ? [text] : []
    }),
  )
}
