import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import '../shared/styles.css'
import './console.css'
import { ApiError } from '../shared/api.ts'
import { useAction, useLive } from '../shared/live.ts'
import { useRoute } from '../shared/route.ts'
import { Brand, Empty, Field, Problem, Waiting } from '../shared/ui.tsx'
import { ask, keepKey, keyHeaders } from './api.ts'
import { Session } from './session.tsx'
import { Sessions } from './sessions.tsx'
import type { SessionSummary } from './types.ts'

const LOOK_MS = 3_000
const UNAUTHORIZED = 401

/** Everything anew whenever a key was given or taken away: nothing of the one before stays. */
function Console() {
  const [keys, setKeys] = useState(0)
  return <Desk key={keys} onKey={() => setKeys(keys + 1)} />
}

function Desk({ onKey }: { onKey: () => void }) {
  const { name: open } = useRoute()
  const live = useLive<SessionSummary[]>('/sessions?limit=200', LOOK_MS, { headers: keyHeaders() })
  const { data, problem, status, refresh } = live
  if (status === UNAUTHORIZED) return <Door onOpen={onKey} />
  const leave = () => {
    keepKey(null)
    onKey()
  }
  return (
    <>
      <header class="bar wide">
        <div>
          <Brand part="agent" />
          <span class="grow" />
          <a class="small" href="/openapi.json">
            API
          </a>
          {keyHeaders()['x-api-key'] !== undefined && (
            <button type="button" class="button plain slim" onClick={leave}>
              Sign out
            </button>
          )}
        </div>
      </header>
      <div class={open === '' ? 'desk' : 'desk opened'}>
        <Sessions sessions={data} open={open} onChanged={refresh} />
        <main>
          <Problem text={problem} onRetry={refresh} />
          {open !== '' && data !== undefined && <Session key={open} id={open} onChanged={refresh} />}
          {open === '' && data === undefined && problem === null && <Waiting />}
          {open === '' && data !== undefined && (
            <Empty title="Open a session, or start a new one">
              <p>
                You see what the agent says and does while it works, approve its plans, and can stop it at any time.
              </p>
            </Empty>
          )}
        </main>
      </div>
    </>
  )
}

/** Asks for a key. It is tried before it is kept. */
function Door({ onOpen }: { onOpen: () => void }) {
  const [key, setKey] = useState('')
  const { run, problem, busy } = useAction()
  useEffect(() => keepKey(null), [])
  const submit = (event: Event) => {
    event.preventDefault()
    void run(async () => {
      try {
        await ask('/sessions?limit=1', { headers: { 'x-api-key': key.trim() } })
      } catch (error) {
        const wrong = error instanceof ApiError && error.status === UNAUTHORIZED
        throw wrong ? new Error('This key is not accepted.') : error
      }
      keepKey(key.trim())
      onOpen()
    })
  }
  return (
    <main class="door">
      <section class="card stack">
        <div>
          <Brand part="agent" />
          <p class="soft">This server asks for one of its API keys. It is kept until you close this tab.</p>
        </div>
        <form class="stack" onSubmit={submit}>
          <Field label="API key">
            <input
              type="password"
              value={key}
              required
              autocomplete="current-password"
              autofocus
              onInput={(event) => setKey(event.currentTarget.value)}
            />
          </Field>
          <Problem text={problem} />
          <button type="submit" class="button primary" disabled={busy}>
            Sign in
          </button>
        </form>
      </section>
    </main>
  )
}

const app = document.getElementById('app')
if (app) render(<Console />, app)
