import { shorten } from '../shared/format.ts'
import { useLive } from '../shared/live.ts'
import { to } from '../shared/route.ts'
import { Ago, Badge, type Column, Empty, Problem, Table, Waiting } from '../shared/ui.tsx'
import type { ConversationView } from './types.ts'
import { why } from './words.ts'

const LOOK_MS = 3_000

/** Who wrote lately, and whom they talk to. */
export function Conversations() {
  const { data, problem, refresh } = useLive<{ conversations: ConversationView[] }>('/hub/conversations', LOOK_MS)
  return (
    <section class="card flush" aria-labelledby="conversations-title">
      <header>
        <h2 id="conversations-title">Conversations</h2>
      </header>
      <Problem text={problem} onRetry={refresh} />
      {data === undefined && problem === null && <Waiting />}
      {data?.conversations.length === 0 && (
        <Empty title="Nobody has written yet">
          <p>Each user who writes to the bot has a conversation here.</p>
        </Empty>
      )}
      {data && data.conversations.length > 0 && (
        <Table label="Conversations" columns={COLUMNS} rows={data.conversations} keyOf={({ user }) => user} />
      )}
    </section>
  )
}

const COLUMNS: Column<ConversationView>[] = [
  {
    title: 'User',
    label: null,
    cell: ({ user, last_text }) => (
      <div class="who">
        <a class="user wrap" href={to('messages', { user })}>
          {user}
        </a>
        <span class="small soft wrap block">{last_text === null ? '(no text is kept)' : shorten(last_text, 120)}</span>
      </div>
    ),
  },
  {
    title: 'Talks to',
    cell: ({ client, chosen }) => (
      <span class="row">
        <strong class="wrap">{client ?? 'nobody'}</strong>
        {chosen !== null && <Badge tone="accent">chosen</Badge>}
      </span>
    ),
  },
  { title: 'Why', cell: ({ reason }) => <span class="small soft">{why(reason)}</span> },
  { title: 'Last wrote', cell: ({ last_at }) => <span class="soft">{<Ago time={last_at} />}</span> },
]
