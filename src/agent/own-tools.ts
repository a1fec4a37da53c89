import { Type } from 'typebox'
import { PROPOSE_PLAN } from './loop.ts'
import { defineTool, done } from './tools/define-tool.ts'

/** What only the loop can do: ask a person, or give a part of the work to another loop. */
export const PLAN_TOOL = {
  name: PROPOSE_PLAN,
  description:
    'Proposes a plan to the person and waits for their decision. Use it before changes that are large or hard to undo.',
  parameters: Type.Object({ plan: Type.String({ minLength: 1, description: 'The plan, in Markdown.' }) }),
  readOnly: true,
  source: 'builtin',
} as const

export const TASK_TOOL = {
  name: 'task',
  description: 'Gives a part of the work to a helper with the same tools and a fresh memory. Returns its answer.',
  parameters: Type.Object({
    goal: Type.String({ minLength: 1, description: 'All the helper needs to know: it sees nothing else.' }),
  }),
  readOnly: false,
  source: 'builtin',
} as const

const TodoInput = Type.Object({
  todos: Type.Array(
    Type.Object({
      text: Type.String({ minLength: 1, maxLength: 500 }),
      status: Type.Enum(['pending', 'in_progress', 'done']),
    }),
    { maxItems: 100 },
  ),
})

const MARKS = { pending: '[ ]', in_progress: '[~]', done: '[x]' }

/** A list of what is to be done, for the model itself and for who watches. */
export const todoWrite = defineTool({
  name: 'todo_write',
  description: 'Replaces your list of what is to be done. Use it for work of several steps, and keep it true.',
  input: TodoInput,
  readOnly: true,
  async run({ todos }, { state }) {
    state.set('todos', todos)
    const lines = todos.map(({ text, status }) => `${MARKS[status]} ${text}`)
    return done(lines.length === 0 ? 'The list is empty.' : lines.join('\n'))
  },
})
