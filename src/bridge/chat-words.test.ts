import { expect, test } from 'vitest'
import { chatCommand, withoutMention } from './chat-words.ts'

test('commands of the bridge are told from other texts', () => {
  expect(chatCommand('/new')).toEqual({ name: 'new' })
  expect(chatCommand(' /STOP ')).toEqual({ name: 'stop' })
  expect(chatCommand('/model')).toEqual({ name: 'model', model: null })
  expect(chatCommand('/model openai:gpt')).toEqual({ name: 'model', model: 'openai:gpt' })
  for (const text of ['/new idea for you', '/stop it', '/model a b', '/news', 'new', '/list', '//new', ''])
    expect(chatCommand(text), text).toBeNull()
})

test('a mention is taken off, another name stays', () => {
  expect(withoutMention('@agent, list files', 'Agent')).toBe('list files')
  expect(withoutMention('@agent', 'agent')).toBe('')
  expect(withoutMention('@agents list', 'agent')).toBe('@agents list')
  expect(withoutMention('hello @agent', 'agent')).toBe('hello @agent')
})
