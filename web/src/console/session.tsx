import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { count } from '../shared/format.ts'
import { useAction } from '../shared/live.ts'
import { to } from '../shared/route.ts'
import { Badge, Confirm, Dialog, Empty, Field, Problem, Waiting } from '../shared/ui.tsx'
import { ask } from './api.ts'
import { Composer } from './composer.tsx'
import { Entry } from './items.tsx'
import { pastItems } from './past.ts'
import type { SessionDetails } from './types.ts'
import { type OpenSession, useSession } from './use-session.ts'

export const STATUS = {
  idle: { text: 'idle', tone: '' },
  running: { text: 'running', tone: 'accent' },
  awaiting_plan: { text: 'waits for you', tone: 'warn' },
} as const

const NEAR_END_PX = 80

/** How a session is called. */
export function nameOf({ title, session_id }: { title: string | null; session_id: string }): string {
  return title || `Session ${session_id.slice(0, 8)}`
}

/** One session: what was said and done, live, and what to say next. */
export function Session({ id, onChanged }: { id: string; onChanged: () => void }) {
  const session = useSession(id, onChanged)
  const { details, items, replaying } = session
  const end = useRef<HTMLDivElement>(null)
  const outputs = useMemo(() => outputsOf(details), [details])
  const past = useMemo(
    () => (replaying ? [] : pastItems(details?.transcript ?? [], items)),
    [details, items, replaying],
  )
  // Whether a person reads the end. Asked when they scroll, not when something has come: a plan is taller than a page.
  const follows = useRef(true)
  const onScroll = ({ currentTarget: box }: { currentTarget: HTMLElement }) => {
    follows.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX
  }
  useEffect(() => {
    if (follows.current) end.current?.scrollIntoView({ block: 'end' })
  }, [items])
  if (session.gone) {
    return (
      <Empty title="This session is gone">
        <p>It was deleted, or never was. The list shows those that are there.</p>
      </Empty>
    )
  }
  if (details === null) return <Waiting />
  return (
    <section class="session" aria-label={nameOf(details)}>
      <Head details={details} session={session} onChanged={onChanged} />
      <div
        class="scroll"
        role="log"
        onScroll={onScroll}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
        tabIndex={0}
        aria-label="What was said and done"
        aria-busy={details.status === 'running'}
      >
        <ol class="timeline">
          {[...past, ...items].map((item) => (
            <Entry
              key={item.key}
              item={item}
              sessionId={id}
              whole={item.kind === 'tool' ? outputs.get(item.key.split(':tool:')[1] ?? '') : undefined}
            />
          ))}
        </ol>
        {items.length + past.length === 0 && !replaying && (
          <Empty title="Nothing was said here yet">
            <p>
              Write what the agent is to do. The demo model understands <code>list files</code>,{' '}
              <code>read README.md</code>, <code>run: ls</code> and <code>plan: tidy up</code>.
            </p>
          </Empty>
        )}
        <div ref={end} />
      </div>
      <Composer sessionId={id} busy={details.status !== 'idle'} />
    </section>
  )
}

function Head(props: { details: SessionDetails; session: OpenSession; onChanged: () => void }) {
  const { details, session, onChanged } = props
  const [asked, setAsked] = useState<'rename' | 'delete' | null>(null)
  const { run, problem, busy } = useAction()
  const fork = useAction()
  const path = `/sessions/${details.session_id}`
  const { text, tone } = STATUS[details.status]
  const rename = (event: SubmitEvent) => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const title = String(new FormData(event.currentTarget).get('title') ?? '')
    void run(async () => {
      await ask(path, { method: 'PATCH', body: { title } })
      setAsked(null)
      session.reload()
      onChanged()
    })
  }
  const remove = () =>
    void run(async () => {
      await ask(path, { method: 'DELETE' })
      onChanged()
      location.hash = to('')
    })
  const copy = () =>
    void fork.run(async () => {
      const made = await ask<{ session_id: string }>(`${path}/fork`, { method: 'POST', body: {} })
      onChanged()
      location.hash = to(made.session_id)
    })
  return (
    <header class="head stack tight">
      <div class="row apart">
        <a class="button plain slim back" href={to('')}>
          ← Sessions
        </a>
        <div class="row grow">
          <h2 class="wrap">{nameOf(details)}</h2>
          <Badge tone={tone}>{text}</Badge>
          {!session.live && <Badge tone="warn">line is down</Badge>}
        </div>
        <div class="row">
          {session.replaying ? (
            <button type="button" class="button slim" onClick={session.endReplay}>
              Stop replay
            </button>
          ) : (
            <button
              type="button"
              class="button slim"
              onClick={session.replay}
              disabled={details.status !== 'idle' || session.items.length === 0}
            >
              Replay
            </button>
          )}
          <button type="button" class="button slim" onClick={copy} disabled={fork.busy}>
            Fork
          </button>
          <button type="button" class="button slim" onClick={() => setAsked('rename')}>
            Rename
          </button>
          <button type="button" class="button slim danger" onClick={() => setAsked('delete')}>
            Delete
          </button>
        </div>
      </div>
      <p class="small soft wrap">
        <span>{details.model}</span> · {count(details.usage.total_steps, 'step')} ·{' '}
        {count(details.usage.total_tokens, 'token')}
        {details.usage.total_tokens > 0 &&
          ` (${details.usage.input_tokens.toLocaleString('en')} in, ${details.usage.output_tokens.toLocaleString('en')} out)`}
        {details.usage.cost !== null && ` · $${details.usage.cost.toFixed(4)}`} ·{' '}
        <span title={details.workspace}>{details.workspace.split('/').at(-1)}</span>
      </p>
      <Problem text={fork.problem} />
      {asked === 'rename' && (
        <Dialog title="Rename the session" onClose={() => setAsked(null)}>
          <form class="stack" onSubmit={rename}>
            <Field label="Title">
              <input name="title" maxLength={200} defaultValue={details.title ?? ''} autocomplete="off" autofocus />
            </Field>
            <Problem text={problem} />
            <div class="actions">
              <button type="button" class="button" onClick={() => setAsked(null)}>
                Cancel
              </button>
              <button type="submit" class="button primary" disabled={busy}>
                Rename
              </button>
            </div>
          </form>
        </Dialog>
      )}
      {asked === 'delete' && (
        <Confirm
          title="Delete this session?"
          action="Delete it"
          problem={problem}
          busy={busy}
          onDo={remove}
          onClose={() => setAsked(null)}
        >
          <p>What was said in it is gone then. A run that is under way is stopped. Files it wrote stay.</p>
        </Confirm>
      )}
    </header>
  )
}

/** The whole output of each tool call. */
function outputsOf(details: SessionDetails | null): Map<string, string> {
  const blocks = details?.transcript.flatMap(({ content }) => content) ?? []
  return new Map(
    blocks.flatMap(({ tool_use_id: id, content }) =>
      id === undefined || content === undefined ? [] : [[id, content] satisfies [string, string]],
    ),
  )
}
