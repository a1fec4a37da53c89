import { expect, test } from 'vitest'
import { afterCall, LIST_DIR, message, user } from './provider.contract.ts'
import { estimateTokens, textTokens } from './tokens.ts'

test('four letters are about a token, and other scripts have more of them', () => {
  expect(textTokens('')).toBe(0)
  expect(textTokens('a')).toBe(1)
  expect(textTokens('a'.repeat(400))).toBe(100)
  expect(textTokens('汉'.repeat(400))).toBe(300)
})

test('everything that is sent counts: prompt, messages, calls, results, tools', () => {
  const long = 'x'.repeat(4_000)
  const least = estimateTokens([], '', [])
  expect(least).toBeGreaterThan(0)
  const with1000More = [
    estimateTokens([], long, []),
    estimateTokens([user(long)], '', []),
    estimateTokens([message('assistant', [{ type: 'tool_use', id: 'a', name: 'b', input: { text: long } }])], '', []),
    estimateTokens([message('tool', [{ type: 'tool_result', toolUseId: 'a', content: long, isError: false }])], '', []),
    estimateTokens([], '', [{ ...LIST_DIR, description: long }]),
    estimateTokens([], '', [{ ...LIST_DIR, parameters: { type: 'object', description: long } }]),
  ]
  for (const tokens of with1000More) expect(tokens - least).toBeGreaterThanOrEqual(1_000)
  for (const tokens of with1000More) expect(tokens - least).toBeLessThan(1_060)
})

test('an input that JSON cannot write is no trouble', () => {
  const call = message('assistant', [{ type: 'tool_use', id: 'a', name: 'b', input: undefined }])
  expect(estimateTokens([...afterCall(), call], 'p', [LIST_DIR])).toBeGreaterThan(20)
})
