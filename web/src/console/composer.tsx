import { useState } from 'preact/hooks'
import { useAction } from '../shared/live.ts'
import { Problem } from '../shared/ui.tsx'
import { ask } from './api.ts'

/** Where a goal is written. Enter sends, Shift+Enter makes a line. */
export function Composer({ sessionId, busy }: { sessionId: string; busy: boolean }) {
  const [goal, setGoal] = useState('')
  const { run, problem } = useAction()
  const stop = useAction()
  const send = async () => {
    if (goal.trim() === '') return
    const body = { goal, on_busy: 'enqueue' }
    if (await run(() => ask(`/sessions/${sessionId}/run`, { method: 'POST', body }))) setGoal('')
  }
  return (
    <form
      class="composer stack tight"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <Problem text={problem ?? stop.problem} />
      <div class="row nowrap">
        <label class="grow">
          <span class="hidden-text">What the agent is to do</span>
          <textarea
            rows={2}
            value={goal}
            placeholder="What is the agent to do?  Try: list files"
            onInput={(event) => setGoal(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
              event.preventDefault()
              void send()
            }}
          />
        </label>
        {busy && (
          <button
            type="button"
            class="button danger"
            onClick={() => void stop.run(() => ask(`/sessions/${sessionId}/cancel`, { method: 'POST' }))}
          >
            Stop
          </button>
        )}
        <button type="submit" class="button primary">
          {busy ? 'Queue' : 'Send'}
        </button>
      </div>
    </form>
  )
}
