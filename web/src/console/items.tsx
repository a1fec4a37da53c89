import { useState } from 'preact/hooks'
import { count } from '../shared/format.ts'
import { useAction } from '../shared/live.ts'
import { Badge, Field, Problem } from '../shared/ui.tsx'
import { ask } from './api.ts'
import type { Item } from './types.ts'

/** One thing of the timeline. `whole` has the full output of tools, where the event has its beginning only. */
export function Entry({ item, sessionId, whole }: { item: Item; sessionId: string; whole: string | undefined }) {
  switch (item.kind) {
    case 'goal':
      return (
        <li class="said person">
          <span class="hidden-text">You:</span>
          <p class="text wrap">{item.text}</p>
        </li>
      )
    case 'text':
      return (
        <li class={item.live ? 'said agent live' : 'said agent'}>
          <span class="hidden-text">Agent:</span>
          <p class="text wrap">{item.text}</p>
        </li>
      )
    case 'tool':
      return <Tool item={item} whole={whole} />
    case 'plan':
      return <Plan item={item} sessionId={sessionId} />
    case 'error':
      return (
        <li class="note bad wrap" role="alert">
          {item.text}
        </li>
      )
    case 'done':
      return (
        <li class="end small soft">
          {ending(item.reason)} {count(item.steps, 'step')}
          {item.tokens > 0 && `, ${count(item.tokens, 'token')}`}
        </li>
      )
  }
}

function Tool({ item, whole }: { item: Extract<Item, { kind: 'tool' }>; whole: string | undefined }) {
  const running = item.success === null
  const output = whole !== undefined && item.output !== null && whole.length > item.output.length ? whole : item.output
  return (
    <li class="tool">
      <details open={item.success === false ? true : undefined}>
        <summary>
          <span class={`dot ${running ? 'warn pulse' : item.success ? 'good' : 'bad'}`} />
          <code class="wrap">{item.name}</code>
          <span class="soft small grow summary">{brief(item.input)}</span>
          <Badge tone={running ? 'warn' : item.success ? 'good' : 'bad'}>
            {running ? 'running' : item.success ? 'done' : 'failed'}
          </Badge>
        </summary>
        <div class="stack tight inside">
          <h3>Arguments</h3>
          <pre class="code">{JSON.stringify(item.input, null, 2)}</pre>
          <h3>Output</h3>
          <pre class="code">{output ?? (running ? 'It is still at work.' : '')}</pre>
        </div>
      </details>
    </li>
  )
}

/** The arguments in a line. */
function brief(input: unknown): string {
  if (typeof input !== 'object' || input === null) return ''
  return Object.values(input)
    .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
    .join('  ')
    .slice(0, 160)
}

const DECISIONS = { approve: 'approved', reject: 'rejected', over: 'not decided' } as const

function Plan({ item, sessionId }: { item: Extract<Item, { kind: 'plan' }>; sessionId: string }) {
  const [plan, setPlan] = useState(item.plan)
  const [feedback, setFeedback] = useState('')
  const { run, problem, busy } = useAction()
  const decide = (body: object) => void run(() => ask(`/sessions/${sessionId}/plan`, { method: 'POST', body }))
  const planId = item.key.slice('plan:'.length)
  if (item.decision !== null) {
    return (
      <li class="card plan stack tight">
        <div class="row apart">
          <h3>Plan</h3>
          <Badge tone={item.decision === 'approve' ? 'good' : item.decision === 'reject' ? 'bad' : ''}>
            {DECISIONS[item.decision]}
          </Badge>
        </div>
        <p class="text wrap">{item.plan}</p>
      </li>
    )
  }
  const edited = plan !== item.plan
  return (
    <li class="card plan open stack">
      <div class="row apart">
        <h3>The agent proposes a plan</h3>
        <Badge tone="warn">waits for you</Badge>
      </div>
      <Field label="Plan" hint="You may change it: the agent carries out what stands here.">
        <textarea rows={5} value={plan} onInput={(event) => setPlan(event.currentTarget.value)} />
      </Field>
      <Field label="If you reject it: why">
        <input value={feedback} onInput={(event) => setFeedback(event.currentTarget.value)} />
      </Field>
      <Problem text={problem} />
      <div class="actions">
        <button
          type="button"
          class="button danger"
          disabled={busy}
          onClick={() => decide({ decision: 'reject', plan_id: planId, ...(feedback === '' ? {} : { feedback }) })}
        >
          Reject
        </button>
        <button
          type="button"
          class="button primary"
          disabled={busy}
          onClick={() => decide({ decision: 'approve', plan_id: planId, ...(edited ? { plan } : {}) })}
        >
          {edited ? 'Approve with my changes' : 'Approve'}
        </button>
      </div>
    </li>
  )
}

const ENDINGS: Record<string, string> = {
  NoMoreToolCalls: 'Done.',
  Cancelled: 'Stopped by a person.',
  BudgetExceeded: 'The budget is used up.',
  Stuck: 'It went round in circles and was stopped.',
  ProviderStop: 'The model stopped.',
  ContextOverflow: 'The conversation became too long for the model.',
  WallClockExceeded: 'It took too long and was stopped.',
  Interrupted: 'The server was stopped in the middle of it.',
}

function ending(reason: string): string {
  return ENDINGS[reason] ?? reason
}
