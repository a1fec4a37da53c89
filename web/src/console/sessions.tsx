import { useState } from 'preact/hooks'
import { count } from '../shared/format.ts'
import { useAction } from '../shared/live.ts'
import { to } from '../shared/route.ts'
import { Ago, Badge, Dialog, Field, Problem } from '../shared/ui.tsx'
import { ask } from './api.ts'
import { nameOf, STATUS } from './session.tsx'
import type { SessionSummary } from './types.ts'

/** The list of sessions beside the open one. */
export function Sessions(props: { sessions: SessionSummary[] | undefined; open: string; onChanged: () => void }) {
  const { sessions, open, onChanged } = props
  const [making, setMaking] = useState(false)
  return (
    <nav class="sessions" aria-label="Sessions">
      <div class="row apart top">
        <h2>Sessions {sessions && sessions.length > 0 && <span class="soft">{sessions.length}</span>}</h2>
        <button type="button" class="button primary slim" onClick={() => setMaking(true)}>
          New session
        </button>
      </div>
      <ul>
        {sessions?.map((session) => (
          <li key={session.session_id}>
            <a href={to(session.session_id)} aria-current={session.session_id === open ? 'page' : undefined}>
              <span class="row apart">
                <span class="grow title wrap">{nameOf(session)}</span>
                {session.status !== 'idle' && (
                  <Badge tone={STATUS[session.status].tone}>{STATUS[session.status].text}</Badge>
                )}
              </span>
              <span class="small soft">
                <Ago time={session.last_active} /> · {count(session.turn_count, 'run')}
              </span>
            </a>
          </li>
        ))}
      </ul>
      {sessions?.length === 0 && (
        <p class="soft small none">No session yet. A session remembers what was said in it.</p>
      )}
      {making && (
        <NewSession
          onClose={() => setMaking(false)}
          onDone={(id) => {
            setMaking(false)
            onChanged()
            location.hash = to(id)
          }}
        />
      )}
    </nav>
  )
}

function NewSession({ onDone, onClose }: { onDone: (id: string) => void; onClose: () => void }) {
  const { run, problem, busy } = useAction()
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const given = new FormData(event.currentTarget)
    const texts = ['title', 'model', 'system_prompt', 'workspace']
      .map((name) => [name, String(given.get(name) ?? '').trim()])
      .filter(([, value]) => value !== '')
    const body = { ...Object.fromEntries(texts), plan_mode: given.get('plan_mode') === 'on' }
    void run(async () => {
      const made = await ask<{ session_id: string }>('/sessions', { method: 'POST', body })
      onDone(made.session_id)
    })
  }
  return (
    <Dialog title="New session" onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field label="Title (optional)">
          <input name="title" maxLength={200} autocomplete="off" autofocus />
        </Field>
        <label class="check">
          <input type="checkbox" name="plan_mode" />
          <span>
            Plan first
            <span class="small soft block">Nothing is written until you have approved a plan.</span>
          </span>
        </label>
        <details>
          <summary>More</summary>
          <div class="stack inside">
            <Field label="Model" hint="provider:model; the server's own when empty.">
              <input name="model" maxLength={200} autocomplete="off" />
            </Field>
            <Field label="Folder" hint="Inside the server's workspace.">
              <input name="workspace" maxLength={4096} autocomplete="off" />
            </Field>
            <Field label="System prompt">
              <textarea name="system_prompt" rows={3} />
            </Field>
          </div>
        </details>
        <Problem text={problem} />
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={busy}>
            Start
          </button>
        </div>
      </form>
    </Dialog>
  )
}
