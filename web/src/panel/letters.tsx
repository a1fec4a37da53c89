import { useState } from 'preact/hooks'
import { call } from '../shared/api.ts'
import { count } from '../shared/format.ts'
import { useAction, useLive } from '../shared/live.ts'
import { Ago, Confirm, Empty, Problem, Waiting } from '../shared/ui.tsx'
import type { LetterView } from './types.ts'
import { death } from './words.ts'

const LOOK_MS = 3_000

/** What could not be delivered: to be given to a client again, or to be thrown away. */
export function Letters({ clients, onChanged }: { clients: string[]; onChanged: () => void }) {
  const { data, problem, refresh } = useLive<{ dead_letters: LetterView[]; total: number }>(
    '/hub/dead-letters?limit=100',
    LOOK_MS,
  )
  const { run, problem: failed, busy } = useAction()
  const [discarding, setDiscarding] = useState<LetterView | null>(null)
  const act = (work: () => Promise<unknown>) =>
    run(async () => {
      await work()
      refresh()
      onChanged()
    })
  const replay = (id: number, client: string) =>
    void act(() => call(`/hub/dead-letters/${id}/replay`, { method: 'POST', body: { client } }))
  const discard = async ({ id }: LetterView) => {
    if (await act(() => call(`/hub/dead-letters/${id}`, { method: 'DELETE' }))) setDiscarding(null)
  }
  return (
    <section class="card flush" aria-labelledby="letters-title">
      <header>
        <h2 id="letters-title">
          Dead letters {data && data.total > 0 && <span class="soft">{count(data.total, 'message')}</span>}
        </h2>
      </header>
      <Problem text={discarding === null ? (failed ?? problem) : problem} />
      {data === undefined && problem === null && <Waiting />}
      {data?.total === 0 && (
        <Empty title="Nothing was left undelivered">
          <p>Messages that could not reach a client are kept here until you deliver or discard them.</p>
        </Empty>
      )}
      <ol class="entries" aria-label="Dead letters, newest first">
        {data?.dead_letters.map((letter) => (
          <Letter
            key={letter.id}
            letter={letter}
            clients={clients}
            busy={busy}
            onReplay={replay}
            onDiscard={() => setDiscarding(letter)}
          />
        ))}
      </ol>
      {discarding && (
        <Confirm
          title="Discard this message?"
          action="Discard"
          problem={failed}
          busy={busy}
          onDo={() => void discard(discarding)}
          onClose={() => setDiscarding(null)}
        >
          <p>Nobody will ever get it.</p>
          <p class="text wrap">{discarding.content}</p>
        </Confirm>
      )}
    </section>
  )
}

function Letter(props: {
  letter: LetterView
  clients: string[]
  busy: boolean
  onReplay: (id: number, client: string) => void
  onDiscard: () => void
}) {
  const { letter, clients, busy, onReplay, onDiscard } = props
  const [target, setTarget] = useState(letter.client ?? '')
  const chosen = clients.includes(target) ? target : (clients[0] ?? '')
  return (
    <li class="entry">
      <div class="row apart">
        <strong class="wrap">{letter.from_user || 'unknown user'}</strong>
        <span class="small soft">
          <Ago time={letter.created_at} />
        </span>
      </div>
      <p class="text wrap">{letter.content ?? <span class="soft">(no text is kept)</span>}</p>
      <div class="row apart">
        <p class="small soft reason">
          {death(letter.reason)}
          {letter.client !== null && (
            <>
              ; it was for <strong class="wrap">{letter.client}</strong>
            </>
          )}
          .
        </p>
        <div class="row">
          {clients.length === 0 ? (
            <span class="small soft">Register a client to deliver it.</span>
          ) : (
            <>
              <select
                class="slim"
                aria-label={`Deliver message ${letter.message_id} to`}
                onChange={(event) => setTarget(event.currentTarget.value)}
              >
                {clients.map((name) => (
                  <option key={name} value={name} selected={name === chosen}>
                    {name}
                  </option>
                ))}
              </select>
              <button
                type="button"
                class="button slim"
                disabled={busy}
                aria-label={`Deliver message ${letter.message_id}`}
                onClick={() => onReplay(letter.id, chosen)}
              >
                Deliver
              </button>
            </>
          )}
          <button
            type="button"
            class="button slim danger"
            aria-label={`Discard message ${letter.message_id}`}
            onClick={onDiscard}
          >
            Discard
          </button>
        </div>
      </div>
    </li>
  )
}
