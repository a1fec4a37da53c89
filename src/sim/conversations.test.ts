import { expect, test } from 'vitest'
import { memoryDoorbell } from '../kit/doorbell.ts'
import { conversationKey, createConversations } from './conversations.ts'

const entry = (text: string) => ({ from: 'user' as const, text, messageId: '1', at: 0, raw: text })
const roomy = { mostEntries: 100, mostConversations: 100, mostChars: 1_000 }

test('a conversation keeps its newest messages, and their index', () => {
  const all = createConversations(memoryDoorbell(), { ...roomy, mostEntries: 2 })
  for (const text of ['a', 'b', 'c']) all.append('bot', 'ann', entry(text))
  expect(all.find('bot', 'ann')?.entries.map(({ index, text }) => [index, text])).toEqual([
    [2, 'b'],
    [3, 'c'],
  ])
})

test('past the bound of all together, who was silent longest is forgotten first', () => {
  const all = createConversations(memoryDoorbell(), { ...roomy, mostChars: 6 })
  all.append('bot', 'ann', entry('aaa'))
  all.append('bot', 'bob', entry('bb'))
  all.append('bot', 'ann', entry('a'))
  all.append('bot', 'cat', entry('cc'))
  expect(all.list().map(({ userId }) => userId)).toEqual(['ann', 'cat'])
  expect(all.find('bot', 'ann')?.entries.map(({ text }) => text)).toEqual(['aaa', 'a'])
})

test('past the most conversations, who was silent longest is forgotten', () => {
  const all = createConversations(memoryDoorbell(), { ...roomy, mostConversations: 2 })
  for (const user of ['ann', 'bob', 'ann', 'cat']) all.append('bot', user, entry(user))
  expect(all.list().map(({ userId }) => userId)).toEqual(['ann', 'cat'])
})

test('a message and a change of typing ring, the same typing again does not', () => {
  const doorbell = memoryDoorbell()
  let rings = 0
  doorbell.listen(conversationKey('bot', 'ann'), () => {
    rings += 1
  })
  const all = createConversations(doorbell)
  all.append('bot', 'ann', entry('a'))
  const conversation = all.find('bot', 'ann')!
  all.setTyping(conversation, true)
  all.setTyping(conversation, true)
  expect(rings).toBe(2)
})
