import { expect, test } from 'vitest'
import { errorText } from '../kit/errors.ts'
import { todoWrite } from './own-tools.ts'
import { temporaryWorkspace } from './workspace/temporary.contract.ts'

async function write(input: unknown) {
  const { workspace } = await temporaryWorkspace()
  const state = new Map<string, unknown>()
  const answer = await todoWrite.run(input, { workspace, state, signal: new AbortController().signal }).catch(toldAs)
  return { ...answer, kept: state.get('todos') }
}

function toldAs(error: unknown) {
  return { success: false, text: errorText(error) }
}

test('todo_write keeps the list and shows it with its marks', async () => {
  const todos = [
    { text: 'look', status: 'done' },
    { text: 'write', status: 'in_progress' },
    { text: 'check', status: 'pending' },
  ]
  expect(await write({ todos })).toEqual({ success: true, text: '[x] look\n[~] write\n[ ] check', kept: todos })
  expect(await write({ todos: [] })).toMatchObject({ success: true, text: 'The list is empty.' })
})

test('todo_write says what is wrong with a list, and keeps nothing of it', async () => {
  const wrong: [unknown, RegExp][] = [
    [{}, /todos is missing/],
    [{ todos: 'all' }, /todos must be an array/],
    [{ todos: [{ text: 'a', status: 'maybe' }] }, /todos\.0\.status must be one of "pending"/],
    [{ todos: [{ text: '', status: 'done' }] }, /todos\.0\.text must not be empty/],
    [{ todos: [{ status: 'done' }] }, /todos\.0\.text is missing/],
  ]
  for (const [input, problem] of wrong) {
    const { success, text, kept } = await write(input)
    expect([success, kept]).toEqual([false, undefined])
    expect(text).toMatch(problem)
  }
})
