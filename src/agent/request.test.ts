import fc from 'fast-check'
import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { message, user } from './core-fixture.contract.ts'
import type { ContentBlock, Message } from './model.ts'
import { validMessages } from './request.ts'

const id = fc.constantFrom('a', 'b', 'c', 'd')
const text = fc.constantFrom('', ' ', '\n', 'words')
const block: fc.Arbitrary<ContentBlock> = fc.oneof(
  fc.record({ type: fc.constant('text' as const), text }),
  fc.record({ type: fc.constant('tool_use' as const), id, name: fc.constant('read'), input: fc.jsonValue() }),
  fc.record({ type: fc.constant('tool_result' as const), toolUseId: id, content: text, isError: fc.boolean() }),
)
const anyMessage: fc.Arbitrary<Message> = fc.record({
  role: fc.constantFrom('user' as const, 'assistant' as const, 'tool' as const),
  content: fc.array(block, { maxLength: 5 }),
  runId: fc.constantFrom('run-1', 'run-2'),
  step: fc.nat(9),
  createdAt: fc.nat(),
})

/** What every provider asks for. */
function expectValid(messages: Message[]): void {
  for (const [index, { role, content }] of messages.entries()) {
    expect(content.length).toBeGreaterThan(0)
    for (const part of content) {
      if (part.type === 'text') expect(part.text.trim()).not.toBe('')
      if (part.type === 'tool_result') expect(part.content.trim()).not.toBe('')
    }
    const calls = content.flatMap((part) => (part.type === 'tool_use' ? [part.id] : []))
    expect(new Set(calls).size).toBe(calls.length)
    const next = messages[index + 1]
    const answered = next?.role === 'tool' ? next.content : []
    if (role === 'assistant')
      expect(answered.map((part) => (part.type === 'tool_result' ? part.toolUseId : part.type))).toEqual(calls)
    else expect(calls).toEqual([])
    if (role === 'tool') expect(messages[index - 1]?.role).toBe('assistant')
    if (role === 'user') expect(content.every(({ type }) => type === 'text')).toBe(true)
  }
}

verifies(
  'agent:loop:valid-request',
  'any messages in any order become ones where each call has exactly one result right behind it',
  () => {
    fc.assert(
      fc.property(fc.array(anyMessage, { maxLength: 12 }), (transcript) => {
        const before = structuredClone(transcript)
        const valid = validMessages(transcript)
        expectValid(valid)
        expect(validMessages(valid)).toEqual(valid)
        expect(transcript).toEqual(before)
      }),
      { numRuns: 500 },
    )
  },
)

verifies('agent:loop:valid-request', 'every prefix, suffix and shuffle of a real transcript is valid too', () => {
  const turn = fc.record({ calls: fc.uniqueArray(fc.nat(3), { maxLength: 4 }), says: text, split: fc.boolean() })
  fc.assert(
    fc.property(
      fc.array(turn, { maxLength: 5 }),
      fc.nat(30),
      fc.nat(30),
      fc.infiniteStream(fc.nat()),
      (turns, a, b, order) => {
        const transcript: Message[] = [user('go')]
        for (const [index, { calls, says, split }] of turns.entries()) {
          const uses = calls.map(
            (n): ContentBlock => ({ type: 'tool_use', id: `${index}-${n}`, name: 'read', input: {} }),
          )
          const results = calls.map((n) => result(`${index}-${n}`, `out ${n}`))
          transcript.push(message('assistant', [{ type: 'text', text: says }, ...uses]))
          if (split) transcript.push(...results.map((one) => message('tool', [one])))
          else transcript.push(message('tool', results))
        }
        expectValid(validMessages(transcript))
        expectValid(validMessages(transcript.slice(0, a)))
        expectValid(validMessages(transcript.slice(a, a + b)))
        const shuffled = transcript
          .map((one) => ({ one, at: order.next().value }))
          .sort((left, right) => left.at - right.at)
          .map(({ one }) => one)
        expectValid(validMessages(shuffled))
        expect(resultsOf(validMessages(transcript)).filter((one) => one.startsWith('Interrupted'))).toEqual([])
      },
    ),
  )
})

test('a call that has no result is answered as interrupted, and an empty result gets words', () => {
  const valid = validMessages([user('go'), calls('a', 'b'), message('tool', [result('b', ' ')])])
  expect(resultsOf(valid)).toEqual(['Interrupted: it is not known whether this was carried out.', '(no output)'])
})

test('a call id that comes back in a later turn keeps its own result, also when the first one has none', () => {
  const valid = validMessages([
    user('go'),
    calls('a'),
    user('again'),
    calls('a'),
    message('tool', [result('a', 'second')]),
  ])
  expect(resultsOf(valid)).toEqual([expect.stringContaining('Interrupted'), 'second'])
})

function calls(...ids: string[]): Message {
  return message(
    'assistant',
    ids.map((one) => ({ type: 'tool_use', id: one, name: 'read', input: {} })),
  )
}

function result(toolUseId: string, content: string): ContentBlock {
  return { type: 'tool_result', toolUseId, content, isError: false }
}

function resultsOf(messages: Message[]): string[] {
  return messages.flatMap(({ content }) =>
    content.flatMap((part) => (part.type === 'tool_result' ? [part.content] : [])),
  )
}
