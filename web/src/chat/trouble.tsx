import { useState } from 'preact/hooks'
import { call } from '../shared/api.ts'
import { useAction } from '../shared/live.ts'
import { Badge, Field, Problem } from '../shared/ui.tsx'
import type { ActiveFault, FaultBody, QrCode } from './api.ts'

const FAULTS: { body: FaultBody; title: string; text: string }[] = [
  { body: { kind: 'down' }, title: 'Service away', text: 'Connections break.' },
  { body: { kind: 'expired' }, title: 'Login expired', text: 'Until a QR code is scanned.' },
  { body: { kind: 'throttle', count: 1 }, title: 'Throttle once', text: 'One answer is held back.' },
  { body: { kind: 'slow', delay_ms: 2000 }, title: 'Slow', text: 'Everything takes two seconds more.' },
  { body: { kind: 'duplicate', count: 1 }, title: 'Say twice', text: 'The next message comes twice.' },
  { body: { kind: 'malformed' }, title: 'Broken message', text: 'One that cannot be read.' },
  { body: { kind: 'bad_json', count: 1 }, title: 'Half an answer', text: 'The next poll is cut.' },
  { body: { kind: 'http_error', status: 502 }, title: 'Bad gateway', text: 'Every call is a 502.' },
  { body: { kind: 'unconfirmed', count: 1 }, title: 'Swallow once', text: 'An answer that nobody sees.' },
  { body: { kind: 'refuse_send', ret: -3 }, title: 'Refuse answers', text: 'The bot may not send.' },
]

/** Buttons that make things go wrong, and the one that mends them. */
export function Trouble({ faults }: { faults: ActiveFault[] }) {
  const { run, problem, busy } = useAction()
  const active = new Set(faults.map(({ kind }) => kind))
  return (
    <section class="card stack" aria-labelledby="trouble-title">
      <div class="row apart">
        <h2 id="trouble-title">Make trouble</h2>
        <button
          type="button"
          class="button slim"
          disabled={busy || faults.length === 0}
          onClick={() => void run(() => call('/sim/fault', { method: 'DELETE' }))}
        >
          Mend all
        </button>
      </div>
      <Problem text={problem} />
      <ul class="faults">
        {FAULTS.map(({ body, title, text }) => (
          <li key={body.kind}>
            <button
              type="button"
              class="fault"
              aria-pressed={active.has(body.kind)}
              disabled={busy || active.has(body.kind)}
              onClick={() => void run(() => call('/sim/fault', { method: 'POST', body }))}
            >
              <span class="row apart">
                <strong>{title}</strong>
                {active.has(body.kind) && <Badge tone="bad">on</Badge>}
              </span>
              <span class="small soft">{text}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}

const OPEN = new Set(['wait', 'scaned', 'need_verifycode'])
const STATES: Record<string, string> = {
  wait: 'waits for a phone',
  scaned: 'scanned',
  need_verifycode: 'waits for the code',
}

/** The phone that scans a bot's QR code. */
export function Scanner({ codes }: { codes: QrCode[] }) {
  const open = codes.filter(({ status }) => OPEN.has(status)).reverse()
  return (
    <section class="card stack" aria-labelledby="scan-title">
      <h2 id="scan-title">Scan a QR code</h2>
      {open.length === 0 && (
        <p class="small soft">When a bot asks for a login, its code appears here, to be scanned as with a phone.</p>
      )}
      {open.map((code) => (
        <Code key={code.qrcode} code={code} />
      ))}
    </section>
  )
}

function Code({ code: { qrcode, status } }: { code: QrCode }) {
  const { run, problem, busy } = useAction()
  const [verify, setVerify] = useState('')
  const scan = (more: object) => void run(() => call('/sim/qr/scan', { method: 'POST', body: { qrcode, ...more } }))
  return (
    <div class="stack tight">
      <p class="row apart">
        <code>{qrcode.slice(0, 8)}…</code>
        <Badge tone="warn">{STATES[status] ?? status}</Badge>
      </p>
      {status !== 'need_verifycode' && (
        <>
          <Field label="Ask for this code (optional)">
            <input
              value={verify}
              maxLength={20}
              autocomplete="off"
              onInput={(event) => setVerify(event.currentTarget.value.trim())}
            />
          </Field>
          <div class="row">
            {status === 'wait' && (
              <button type="button" class="button slim" disabled={busy} onClick={() => scan({ confirm: false })}>
                Only scan
              </button>
            )}
            <button
              type="button"
              class="button primary slim"
              disabled={busy}
              onClick={() => scan(verify === '' ? {} : { verify_code: verify })}
            >
              Scan and confirm
            </button>
          </div>
        </>
      )}
      <Problem text={problem} />
    </div>
  )
}
