import { useState } from 'preact/hooks'
import { call } from '../shared/api.ts'
import { useAction, useLive } from '../shared/live.ts'
import { to } from '../shared/route.ts'
import { Ago, Badge, Empty, Problem, Waiting } from '../shared/ui.tsx'
import type { MessageView } from './types.ts'
import { DELIVERIES, STATES, why } from './words.ts'

const PAGE = 50
const LOOK_MS = 2_000

/** What came, where it went, and why. */
export function Messages({ user, client, clients }: { user: string; client: string; clients: string[] }) {
  const [limit, setLimit] = useState(PAGE)
  const query = new URLSearchParams({ limit: String(limit) })
  if (user !== '') query.set('user', user)
  if (client !== '') query.set('client', client)
  const { data, problem, refresh } = useLive<{ messages: MessageView[] }>(`/hub/messages?${query}`, LOOK_MS)
  const replay = useAction()
  const go = (next: { user?: string; client?: string }) => {
    const params = { user, client, ...next }
    location.hash = to('messages', Object.fromEntries(Object.entries(params).filter(([, value]) => value !== '')))
  }
  const again = (id: number, name: string) =>
    void replay.run(async () => {
      await call(`/hub/messages/${id}/replay`, { method: 'POST', body: { client: name } })
      refresh()
    })
  return (
    <section class="card flush" aria-labelledby="messages-title">
      <header class="row apart">
        <h2 id="messages-title">Messages {user !== '' && <span class="soft wrap">of {user}</span>}</h2>
        <div class="row">
          {user !== '' && (
            <button type="button" class="button slim" onClick={() => go({ user: '' })}>
              All users
            </button>
          )}
          <select
            class="slim"
            aria-label="Only for a client"
            onChange={(event) => go({ client: event.currentTarget.value })}
          >
            <option value="" selected={client === ''}>
              All clients
            </option>
            {clients.map((name) => (
              <option key={name} value={name} selected={name === client}>
                {name}
              </option>
            ))}
          </select>
        </div>
      </header>
      <Problem text={replay.problem ?? problem} />
      {data === undefined && problem === null && <Waiting />}
      {data?.messages.length === 0 && (
        <Empty title="Nothing has come yet">
          <p>Messages of users appear here with the client they went to, and the reason why.</p>
        </Empty>
      )}
      <ol class="entries" aria-label="Messages, newest first">
        {data?.messages.map((message) => (
          <Message key={message.id} message={message} onReplay={again} />
        ))}
      </ol>
      {data?.messages.length === limit && limit < 1000 && (
        <p class="more">
          <button type="button" class="button" onClick={() => setLimit(Math.min(1000, limit * 2))}>
            Show older
          </button>
        </p>
      )}
    </section>
  )
}

function Message({ message, onReplay }: { message: MessageView; onReplay: (id: number, client: string) => void }) {
  const { id, from_user, received_at, state, reason, duplicate_of, content, deliveries } = message
  const { text, tone } = STATES[state] ?? { text: state, tone: '' }
  return (
    <li class="entry">
      <div class="row apart">
        <a class="user wrap" href={to('messages', { user: from_user })}>
          {from_user || 'unknown user'}
        </a>
        <span class="row small soft">
          <Ago time={received_at} />
          <Badge tone={tone}>{text}</Badge>
        </span>
      </div>
      <p class="text wrap">{content ?? <span class="soft">(no text is kept)</span>}</p>
      <p class="small soft">
        {duplicate_of === null ? why(reason) : `It repeats message ${duplicate_of}, so nobody got it again.`}{' '}
        <code class="tag">{reason}</code>
      </p>
      {deliveries.length > 0 && (
        <ul class="row small">
          {deliveries.map((delivery) => (
            <li key={delivery.client} class="row route">
              <span aria-hidden="true">→</span>
              <strong class="wrap">{delivery.client}</strong>
              <Badge tone={DELIVERIES[delivery.state]?.tone ?? ''}>
                {DELIVERIES[delivery.state]?.text ?? delivery.state}
              </Badge>
              {delivery.failures > 0 && <span class="soft">handed out {delivery.failures + 1} times</span>}
              {delivery.state.startsWith('acked') && (
                <button
                  type="button"
                  class="button plain slim"
                  aria-label={`Deliver again: message ${id} to ${delivery.client}`}
                  onClick={() => onReplay(id, delivery.client)}
                >
                  Deliver again
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
    </li>
  )
}
