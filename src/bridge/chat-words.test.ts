import { expect, test } from 'vitest'
import { chatCommand, planWord, withoutMention } from './chat-words.ts'

test('commands of the bridge are told from other texts', () => {
  expect(chatCommand('/new')).toEqual({ name: 'new' })
  expect(chatCommand(' /STOP ')).toEqual({ name: 'stop' })
  expect(chatCommand('/model')).toEqual({ name: 'model', model: null })
  expect(chatCommand('/model openai:gpt')).toEqual({ name: 'model', model: 'openai:gpt' })
  for (const text of ['/new idea for you', '/stop it', '/model a b', '/news', 'new', '/list', '//new', ''])
    expect(chatCommand(text), text).toBeNull()
})

test('words about a plan', () => {
  for (const text of ['approve', 'Approve.', 'yes', 'OK', 'go ahead'])
    expect(planWord(text)).toEqual({ decision: 'approve' })
  for (const text of ['reject', 'No!']) expect(planWord(text)).toEqual({ decision: 'reject' })
  expect(planWord('approve: 1. this\n2. that')).toEqual({ decision: 'approve', plan: '1. this\n2. that' })
  expect(planWord('edit：只做第一步')).toEqual({ decision: 'approve', plan: '只做第一步' })
  expect(planWord('reject: too long')).toEqual({ decision: 'reject', feedback: 'too long' })
  expect(planWord('approve of cats?')).toEqual({ decision: 'reject', feedback: 'approve of cats?' })
})

test('a mention is taken off, another name stays', () => {
  expect(withoutMention('@agent, list files', 'Agent')).toBe('list files')
  expect(withoutMention('@agent', 'agent')).toBe('')
  expect(withoutMention('@agents list', 'agent')).toBe('@agents list')
  expect(withoutMention('hello @agent', 'agent')).toBe('hello @agent')
})
