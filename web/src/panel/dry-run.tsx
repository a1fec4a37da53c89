import { useState } from 'preact/hooks'
import { call } from '../shared/api.ts'
import { useAction } from '../shared/live.ts'
import { Badge, Field, Problem } from '../shared/ui.tsx'
import type { DryRun } from './types.ts'
import { STATES, why } from './words.ts'

/** Where a text would go, without sending it. */
export function TryRoute() {
  const [result, setResult] = useState<DryRun | null>(null)
  const { run, problem, busy } = useAction()
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const given = new FormData(event.currentTarget)
    const body = { user: String(given.get('user')), text: String(given.get('text')) }
    void run(async () => setResult(await call<DryRun>('/hub/route/dry-run', { method: 'POST', body })))
  }
  return (
    <section class="card stack" aria-labelledby="try-title">
      <div>
        <h2 id="try-title">Where would it go?</h2>
        <p class="soft">Tells which client would get a message now, and why. Nothing is sent.</p>
      </div>
      <form class="stack" onSubmit={submit}>
        <Field label="User">
          <input name="user" required autocomplete="off" placeholder="ann@im.wechat" />
        </Field>
        <Field label="Text">
          <textarea name="text" required rows={2} placeholder="@claude what is this?" />
        </Field>
        <div>
          <button type="submit" class="button primary" disabled={busy}>
            Try
          </button>
        </div>
      </form>
      <Problem text={problem} />
      <div role="status">{result && <Result result={result} />}</div>
    </section>
  )
}

function Result({ result }: { result: DryRun }) {
  const { text, tone } = STATES[result.state] ?? { text: result.state, tone: '' }
  return (
    <div class="note stack tight">
      <p class="row">
        <Badge tone={tone}>{text}</Badge>
        {result.clients.map((name) => (
          <span key={name} class="row">
            <span aria-hidden="true">→</span> <strong class="wrap">{name}</strong>
          </span>
        ))}
      </p>
      <p>
        {why(result.reason)} <code class="tag">{result.reason}</code>
      </p>
      {result.chooses !== null && <p>From then on the user talks to {result.chooses}.</p>}
      {result.replies.map((reply) => (
        <div key={reply}>
          <p class="small soft">The user is told:</p>
          <p class="text wrap">{reply}</p>
        </div>
      ))}
    </div>
  )
}
