import { render } from 'preact'
import { useEffect } from 'preact/hooks'
import '../shared/styles.css'
import './panel.css'
import { useLive } from '../shared/live.ts'
import { to, useRoute } from '../shared/route.ts'
import { Brand, Problem } from '../shared/ui.tsx'
import { Clients } from './clients.tsx'
import { Conversations } from './conversations.tsx'
import { TryRoute } from './dry-run.tsx'
import { Letters } from './letters.tsx'
import { LineNotice, LinePill } from './line.tsx'
import { Messages } from './messages.tsx'
import { Pairings } from './pairings.tsx'
import { Service } from './service.tsx'
import type { Overview } from './types.ts'

const LOOK_MS = 2_000
const UNAUTHORIZED = 401
const TABS: [string, string][] = [
  ['', 'Clients'],
  ['conversations', 'Conversations'],
  ['messages', 'Messages'],
  ['dead-letters', 'Dead letters'],
  ['route', 'Try a route'],
  ['service', 'Service'],
]

function Panel() {
  const { name, params } = useRoute()
  const live = useLive<Overview>('/hub/overview', LOOK_MS)
  const { data, problem, status, refresh } = live
  useEffect(() => {
    // The session has ended: the hub has a form for that.
    if (status === UNAUTHORIZED) location.reload()
  }, [status])
  // On a phone the open tab may stand outside of the strip.
  useEffect(() => document.querySelector('.tabs [aria-current]')?.scrollIntoView({ block: 'nearest' }), [name])
  const names = data?.clients.map((client) => client.name) ?? []
  return (
    <>
      <header class="bar">
        <div>
          <Brand part="hub" />
          <nav class="tabs grow" aria-label="Parts">
            {TABS.map(([path, title]) => (
              <a key={path} href={to(path)} aria-current={name === path ? 'page' : undefined}>
                {title}
                {path === 'dead-letters' && data && data.dead_letters > 0 && (
                  <span class="count">{data.dead_letters}</span>
                )}
              </a>
            ))}
          </nav>
          <LinePill link={data?.link} lost={problem !== null && status !== UNAUTHORIZED} />
          {document.documentElement.dataset.signedIn !== undefined && (
            <form method="post" action="/hub/ui/sign-out">
              <button type="submit" class="button plain slim">
                Sign out
              </button>
            </form>
          )}
        </div>
      </header>
      <main class="page">
        {problem !== null && status !== UNAUTHORIZED && <Problem text={problem} onRetry={refresh} />}
        {data && problem === null && name !== 'service' && <LineNotice link={data.link} />}
        {name === '' && <Pairings onChanged={refresh} />}
        {name === '' && <Clients live={live} />}
        {name === 'conversations' && <Conversations />}
        {name === 'messages' && (
          <Messages user={params.get('user') ?? ''} client={params.get('client') ?? ''} clients={names} />
        )}
        {name === 'dead-letters' && <Letters clients={names} onChanged={refresh} />}
        {name === 'route' && <TryRoute />}
        {name === 'service' && <Service />}
      </main>
    </>
  )
}

const app = document.getElementById('app')
if (app) render(<Panel />, app)
