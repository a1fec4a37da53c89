import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { call } from '../shared/api.ts'
import { count } from '../shared/format.ts'
import { useAction } from '../shared/live.ts'
import { Ago, Dialog, Problem } from '../shared/ui.tsx'
import type { ClientView, Issued } from './types.ts'

/** What can be done with one client. */
export function ClientDialog(props: {
  client: ClientView
  onChanged: () => void
  onIssued: (issued: Issued) => void
  onClose: () => void
}) {
  const { client, onChanged, onIssued, onClose } = props
  const { run, problem, busy } = useAction()
  const [asked, setAsked] = useState<'rotate' | 'delete' | null>(null)
  const path = `/hub/clients/${encodeURIComponent(client.name)}`
  // As it was asked for, until the hub's own word comes with the next look.
  const [wanted, setWanted] = useState<{ default?: boolean; fallback?: boolean }>({})
  const change = async (body: { default?: boolean; fallback?: boolean }) => {
    setWanted((before) => ({ ...before, ...body }))
    const done = await run(() => call(path, { method: 'PATCH', body }))
    if (done) onChanged()
    else setWanted({})
  }
  const rotate = (overlapSeconds: number) =>
    void run(async () => {
      const body = { overlap_seconds: overlapSeconds }
      onIssued(await call<Issued>(`${path}/rotate`, { method: 'POST', body }))
    })
  const remove = () =>
    void run(async () => {
      await call(path, { method: 'DELETE' })
      onChanged()
      onClose()
    })
  return (
    <Dialog title={client.name} onClose={onClose}>
      <dl class="facts">
        {client.label !== client.name && <Fact name="Label">{client.label}</Fact>}
        <Fact name="Status">{client.status}</Fact>
        <Fact name="Last seen">
          <Ago time={client.last_seen} />
        </Fact>
        <Fact name="Registered">
          <Ago time={client.created_at} />
        </Fact>
        <Fact name="Waiting">{count(client.queue_size, 'message')}</Fact>
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={wanted.default ?? client.default}
          disabled={busy}
          onChange={(event) => void change({ default: event.currentTarget.checked })}
        />
        <span>
          Default
          <span class="small soft block">Users who chose nobody talk to it.</span>
        </span>
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={wanted.fallback ?? client.fallback}
          disabled={busy}
          onChange={(event) => void change({ fallback: event.currentTarget.checked })}
        />
        <span>
          Fallback
          <span class="small soft block">Gets messages only while no other client is online.</span>
        </span>
      </label>
      <Problem text={problem} />
      {asked === null && (
        <div class="actions">
          <button type="button" class="button danger" onClick={() => setAsked('delete')}>
            Delete…
          </button>
          <button type="button" class="button" onClick={() => setAsked('rotate')}>
            Rotate token…
          </button>
          <button type="button" class="button primary" onClick={onClose}>
            Done
          </button>
        </div>
      )}
      {asked === 'rotate' && (
        <Question text="A new token is made. How long may the old one still be used?" onBack={() => setAsked(null)}>
          <button type="button" class="button danger" disabled={busy} onClick={() => rotate(0)}>
            Not at all
          </button>
          <button type="button" class="button primary" disabled={busy} onClick={() => rotate(3600)}>
            One hour
          </button>
        </Question>
      )}
      {asked === 'delete' && (
        <Question
          text={`${client.name} is forgotten and its token stops working. ${
            client.queue_size === 0
              ? 'Nothing waits for it.'
              : `${count(client.queue_size, 'waiting message')} will be kept as dead letters.`
          }`}
          onBack={() => setAsked(null)}
        >
          <button type="button" class="button danger" disabled={busy} onClick={remove}>
            Delete {client.name}
          </button>
        </Question>
      )}
    </Dialog>
  )
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt class="soft">{name}</dt>
      <dd class="wrap">{children}</dd>
    </div>
  )
}

function Question({ text, onBack, children }: { text: string; onBack: () => void; children: ComponentChildren }) {
  return (
    <div class="note warn stack">
      <p role="status">{text}</p>
      <div class="actions">
        <button type="button" class="button" onClick={onBack}>
          Back
        </button>
        {children}
      </div>
    </div>
  )
}
