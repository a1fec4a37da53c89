import { useState } from 'preact/hooks'
import { call } from '../shared/api.ts'
import { useAction, useLive } from '../shared/live.ts'
import { Ago, Dialog, Field, Problem } from '../shared/ui.tsx'
import type { PairingView } from './types.ts'

const LOOK_MS = 3_000
const WAITING = new Set(['pending', 'opened'])

/** Clients that ask to be let in; nothing while nobody does. */
export function Pairings({ onChanged }: { onChanged: () => void }) {
  const { data, refresh } = useLive<{ pairings: PairingView[] }>('/hub/pairings', LOOK_MS)
  const { run, problem, busy } = useAction()
  const [approving, setApproving] = useState<PairingView | null>(null)
  const waiting = data?.pairings.filter(({ status }) => WAITING.has(status)) ?? []
  const decide = (path: string, body: object) =>
    run(async () => {
      await call(`/hub/pairings/${path}`, { method: 'POST', body })
      setApproving(null)
      refresh()
      onChanged()
    })
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement) || approving === null) return
    const given = new FormData(event.currentTarget)
    const label = String(given.get('label') ?? '').trim()
    const body = { name: String(given.get('name') ?? ''), ...(label === '' ? {} : { label }) }
    void decide(`${encodeURIComponent(approving.id)}/approve`, body)
  }
  if (waiting.length === 0) return null
  return (
    <section class="card flush" aria-labelledby="pairings-title">
      <header>
        <h2 id="pairings-title">Asking to be let in</h2>
      </header>
      <Problem text={approving === null ? problem : null} />
      <ul class="entries">
        {waiting.map((pairing) => (
          <li key={pairing.id} class="entry row apart">
            <div class="reason">
              <p>
                A client at <code>{pairing.from}</code>
              </p>
              <p class="small soft">
                asked <Ago time={pairing.created_at} />. Let it in only if you have just started it yourself.
              </p>
            </div>
            <div class="row">
              <button
                type="button"
                class="button danger"
                disabled={busy}
                onClick={() => void decide(`${encodeURIComponent(pairing.id)}/reject`, {})}
              >
                Reject
              </button>
              <button type="button" class="button primary" onClick={() => setApproving(pairing)}>
                Let it in…
              </button>
            </div>
          </li>
        ))}
      </ul>
      {approving && (
        <Dialog title="Let a client in" onClose={() => setApproving(null)}>
          <form class="stack" onSubmit={submit}>
            <Field label="Name" hint="Users write @name to reach it.">
              <input name="name" required maxLength={64} autocomplete="off" autofocus />
            </Field>
            <Field label="Label (optional)">
              <input name="label" maxLength={128} autocomplete="off" />
            </Field>
            <Problem text={problem} />
            <div class="actions">
              <button type="button" class="button" onClick={() => setApproving(null)}>
                Cancel
              </button>
              <button type="submit" class="button primary" disabled={busy}>
                Let it in
              </button>
            </div>
          </form>
        </Dialog>
      )}
    </section>
  )
}
