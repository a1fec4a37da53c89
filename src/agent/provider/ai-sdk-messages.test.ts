import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ContentBlock, Message } from '../model.ts'
import { toSdkMessages } from './ai-sdk-messages.ts'
import { message, user } from './provider.contract.ts'

test('whatever the ids are, every call has its own on the wire and its result has the same', () => {
  const id = fc.oneof(fc.string(), fc.constantFrom('', 'call_0', 'call.0', 'call_0_2', 'x'.repeat(100)))
  const calls = fc.array(fc.record({ id, name: fc.constantFrom('a', 'b'), input: fc.jsonValue() }), { minLength: 1 })
  fc.assert(
    fc.property(fc.array(calls, { maxLength: 6 }), (turns) => {
      const sent = toSdkMessages(turns.flatMap(turnOf))
      const made = parts(sent, 'tool-call')
      const answered = parts(sent, 'tool-result')
      expect(answered).toEqual(made)
      const ids = made.map(([callId]) => callId)
      expect(new Set(ids).size).toBe(ids.length)
      for (const callId of ids) expect(callId).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
    }),
  )
})

test('no block and no message is empty', () => {
  const blank = fc.constantFrom('', ' ', '\n\t', 'text')
  const block = blank.map((text): ContentBlock => ({ type: 'text', text }))
  const role = fc.constantFrom('user' as const, 'assistant' as const, 'tool' as const)
  const one = fc.tuple(role, fc.array(block)).map(([who, content]) => message(who, content))
  fc.assert(
    fc.property(fc.array(one), (messages) => {
      for (const { content } of toSdkMessages(messages)) {
        expect(content.length).toBeGreaterThan(0)
        expect(JSON.stringify(content)).not.toMatch(/"text":"\s*"/)
      }
    }),
  )
})

test('a result of a call that is not there is left out', () => {
  const stray = message('tool', [{ type: 'tool_result', toolUseId: 'gone', content: 'x', isError: false }])
  expect(toSdkMessages([user('hi'), stray])).toEqual([{ role: 'user', content: [{ type: 'text', text: 'hi' }] }])
})

function turnOf(calls: readonly { id: string; name: string; input: unknown }[]): Message[] {
  return [
    message(
      'assistant',
      calls.map((call) => ({ type: 'tool_use', ...call })),
    ),
    message(
      'tool',
      calls.map(({ id }) => ({ type: 'tool_result', toolUseId: id, content: 'done', isError: false })),
    ),
  ]
}

/** Id and name of the parts of a kind, in order. */
function parts(messages: ReturnType<typeof toSdkMessages>, kind: string): [string, string][] {
  return messages.flatMap(({ content }) =>
    typeof content === 'string'
      ? []
      : content.flatMap((part): [string, string][] =>
          part.type === kind && 'toolCallId' in part && 'toolName' in part ? [[part.toolCallId, part.toolName]] : [],
        ),
  )
}
