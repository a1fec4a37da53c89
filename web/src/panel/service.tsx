import { useState } from 'preact/hooks'
import { call } from '../shared/api.ts'
import { useAction, useLive } from '../shared/live.ts'
import { Ago, Badge, Dialog, Field, Problem, Waiting } from '../shared/ui.tsx'
import type { AccountView, LoginView, Upstream } from './types.ts'
import { lineState } from './words.ts'

const LOOK_MS = 2_000
const OPEN = new Set(['wait', 'scanned', 'need_verify_code'])

/** The bot accounts at the messaging service: how each one's line is, what to do, and the QR code to scan. */
export function Service() {
  const { data, problem, refresh } = useLive<Upstream>('/hub/upstream', LOOK_MS)
  const [asked, setAsked] = useState<string | null>(null)
  const { run, problem: failed, busy } = useAction()
  const start = (account: string) =>
    void run(async () => {
      const login = await call<LoginView>('/hub/upstream/login', { method: 'POST', body: { account } })
      setAsked(login.login_id)
      refresh()
    })
  const login = data?.logins.find(({ login_id }) => login_id === asked)
  return (
    <section class="card flush" aria-labelledby="service-title">
      <header>
        <h2 id="service-title">Messaging service</h2>
      </header>
      <Problem text={failed ?? problem} />
      {data === undefined && problem === null && <Waiting />}
      <ul class="entries">
        {data?.accounts.map((account) => (
          <Account
            key={account.account}
            account={account}
            open={data.logins.find((one) => one.account === account.account && OPEN.has(one.status))}
            busy={busy}
            onLogin={() => start(account.account)}
            onShow={setAsked}
          />
        ))}
      </ul>
      {login && <LoginDialog login={login} onChanged={refresh} onClose={() => setAsked(null)} />}
    </section>
  )
}

function Account(props: {
  account: AccountView
  open: LoginView | undefined
  busy: boolean
  onLogin: () => void
  onShow: (id: string) => void
}) {
  const { account, open, busy, onLogin, onShow } = props
  const { text, tone } = lineState(account.state)
  return (
    <li class="entry">
      <div class="row apart">
        <span class="row">
          <strong class="wrap">{account.account}</strong>
          <Badge tone={tone}>{text}</Badge>
        </span>
        <span class="small soft">
          since <Ago time={account.since} />
        </span>
      </div>
      <div class="row apart">
        <div class="small soft reason wrap">
          <p>{account.reason}</p>
          {account.action !== null && <p class="bad">{account.action}</p>}
          {account.bot_id !== null && (
            <p>
              Bot <code>{account.bot_id}</code>
              {account.user_id !== null && (
                <>
                  {' '}
                  of <code>{account.user_id}</code>
                </>
              )}
            </p>
          )}
        </div>
        {open === undefined ? (
          <button
            type="button"
            class={account.state === 'needs_login' ? 'button primary' : 'button'}
            disabled={busy}
            aria-label={`Log in with a QR code: ${account.account}`}
            onClick={onLogin}
          >
            Log in with a QR code
          </button>
        ) : (
          <button type="button" class="button primary" onClick={() => onShow(open.login_id)}>
            Show the QR code
          </button>
        )}
      </div>
    </li>
  )
}

/** A login under way: the code to scan, and what the phone asks for. */
function LoginDialog({ login, onChanged, onClose }: { login: LoginView; onChanged: () => void; onClose: () => void }) {
  const { run, problem, busy } = useAction()
  const path = `/hub/upstream/login/${encodeURIComponent(login.login_id)}`
  const verify = (event: SubmitEvent) => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const code = String(new FormData(event.currentTarget).get('code') ?? '').trim()
    void run(async () => {
      await call(`${path}/verify-code`, { method: 'POST', body: { code } })
      onChanged()
    })
  }
  const cancel = () =>
    void run(async () => {
      await call(path, { method: 'DELETE' })
      onChanged()
      onClose()
    })
  const isOpen = OPEN.has(login.status)
  return (
    <Dialog title={`Log in ${login.account}`} onClose={onClose}>
      <p role="status">{login.message}</p>
      {login.status === 'wait' && login.qr_svg !== null && (
        <img
          class="qr"
          src={`data:image/svg+xml,${encodeURIComponent(login.qr_svg)}`}
          alt="QR code to scan with the messenger"
        />
      )}
      {login.status === 'wait' && login.qr_text !== null && (
        <details>
          <summary class="small soft">The code as text</summary>
          <code class="small">{login.qr_text}</code>
        </details>
      )}
      {login.status === 'need_verify_code' && (
        <form class="stack" onSubmit={verify}>
          <Field label="The code that the phone shows">
            <input name="code" required maxLength={20} pattern="[A-Za-z0-9]+" autocomplete="one-time-code" autofocus />
          </Field>
          <div>
            <button type="submit" class="button primary" disabled={busy}>
              Send the code
            </button>
          </div>
        </form>
      )}
      <Problem text={problem} />
      <div class="actions">
        {isOpen && (
          <button type="button" class="button danger" disabled={busy} onClick={cancel}>
            Cancel the login
          </button>
        )}
        <button type="button" class={isOpen ? 'button' : 'button primary'} onClick={onClose}>
          {isOpen ? 'Close' : 'Done'}
        </button>
      </div>
    </Dialog>
  )
}
