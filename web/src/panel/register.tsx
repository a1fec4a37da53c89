import { useRef } from 'preact/hooks'
import { call } from '../shared/api.ts'
import { useAction } from '../shared/live.ts'
import { Dialog, Field, Problem } from '../shared/ui.tsx'
import type { Issued } from './types.ts'

/** Registers a client; the token goes to who asked for the dialog. */
export function RegisterDialog({ onDone, onClose }: { onDone: (issued: Issued) => void; onClose: () => void }) {
  const form = useRef<HTMLFormElement>(null)
  const { run, problem, busy } = useAction()
  const submit = (event: Event) => {
    event.preventDefault()
    if (form.current === null) return
    const given = new FormData(form.current)
    const label = String(given.get('label') ?? '').trim()
    const body = {
      name: String(given.get('name') ?? ''),
      ...(label === '' ? {} : { label }),
      fallback: given.get('fallback') === 'on',
    }
    void run(async () => onDone(await call<Issued>('/hub/register', { method: 'POST', body })))
  }
  return (
    <Dialog title="Register a client" onClose={onClose}>
      <form ref={form} class="stack" onSubmit={submit}>
        <Field label="Name" hint="Users write @name to reach it.">
          <input name="name" required maxLength={64} autocomplete="off" aria-invalid={problem !== null} autofocus />
        </Field>
        <Field label="Label (optional)" hint="A few words for people.">
          <input name="label" maxLength={128} autocomplete="off" />
        </Field>
        <label class="check">
          <input type="checkbox" name="fallback" />
          <span>
            Fallback
            <span class="small soft block">Gets messages only while no other client is online.</span>
          </span>
        </label>
        <Problem text={problem} />
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={busy}>
            Register
          </button>
        </div>
      </form>
    </Dialog>
  )
}
