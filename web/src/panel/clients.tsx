import { useState } from 'preact/hooks'
import type { Live } from '../shared/live.ts'
import { Spark } from '../shared/spark.tsx'
import { Ago, Badge, type Column, Empty, Table, Waiting } from '../shared/ui.tsx'
import { ClientDialog } from './client-dialog.tsx'
import { RegisterDialog } from './register.tsx'
import { TokenDialog } from './token.tsx'
import type { ClientView, Issued, Overview } from './types.ts'

type Open = { dialog: 'register' } | { dialog: 'client'; name: string } | { dialog: 'token'; issued: Issued } | null

/** The clients: who is there, how much waits, what went through; and everything one does with them. */
export function Clients({ live: { data, refresh } }: { live: Live<Overview> }) {
  const [open, setOpen] = useState<Open>(null)
  const shown = open?.dialog === 'client' ? data?.clients.find(({ name }) => name === open.name) : undefined
  const issued = (token: Issued) => {
    refresh()
    setOpen({ dialog: 'token', issued: token })
  }
  const register = (
    <button type="button" class="button primary" onClick={() => setOpen({ dialog: 'register' })}>
      Register a client
    </button>
  )
  return (
    <section class="card flush" aria-labelledby="clients-title">
      <header class="row apart">
        <h2 id="clients-title">
          Clients{' '}
          {data && data.total > 0 && (
            <span class="soft">
              {data.online} of {data.total} online
            </span>
          )}
        </h2>
        {data && data.total > 0 && register}
      </header>
      {data === undefined && <Waiting />}
      {data?.total === 0 && (
        <Empty title="No client is registered yet">
          <p>A client is an AI agent that answers users. Register one, give it its token, and it can fetch messages.</p>
          {register}
        </Empty>
      )}
      {data && data.total > 0 && (
        <Table
          label="Clients"
          columns={columns((name) => setOpen({ dialog: 'client', name }))}
          rows={data.clients}
          keyOf={({ name }) => name}
        />
      )}
      {data && data.total > data.clients.length && (
        <p class="soft more">The first {data.clients.length} are shown; GET /hub/clients has all of them.</p>
      )}
      {open?.dialog === 'register' && <RegisterDialog onDone={issued} onClose={() => setOpen(null)} />}
      {open?.dialog === 'token' && <TokenDialog issued={open.issued} onClose={() => setOpen(null)} />}
      {shown && <ClientDialog client={shown} onChanged={refresh} onIssued={issued} onClose={() => setOpen(null)} />}
    </section>
  )
}

function columns(onManage: (name: string) => void): Column<ClientView>[] {
  return [
    {
      title: 'Client',
      label: null,
      cell: ({ name, label, default: isDefault, fallback }) => (
        <div class="who">
          <span class="row">
            <strong class="wrap">{name}</strong>
            {isDefault && <Badge tone="accent">default</Badge>}
            {fallback && <Badge>fallback</Badge>}
          </span>
          {label !== name && <span class="small soft wrap block">{label}</span>}
        </div>
      ),
    },
    {
      title: 'Status',
      cell: ({ status }) => (
        <span class={status === 'online' ? 'state good' : 'state soft'}>
          <span class={status === 'online' ? 'dot good' : 'dot'} />
          {status}
        </span>
      ),
    },
    { title: 'Last seen', cell: ({ last_seen }) => <span class="soft">{<Ago time={last_seen} />}</span> },
    { title: 'Waiting', number: true, cell: ({ queue_size }) => queue_size.toLocaleString('en') },
    { title: 'Last 30 minutes', cell: ({ received, sent }) => <Spark received={received} sent={sent} /> },
    {
      title: 'Actions',
      label: null,
      number: true,
      cell: ({ name }) => (
        <button type="button" class="button slim" aria-label={`Manage ${name}`} onClick={() => onManage(name)}>
          Manage
        </button>
      ),
    },
  ]
}
