import { render } from 'preact'
import { useState } from 'preact/hooks'
import '../shared/styles.css'
import './chat.css'
import { Brand, Waiting } from '../shared/ui.tsx'
import { type NewsAnswer, useNews } from './api.ts'
import { Phone } from './phone.tsx'
import { Scanner, Trouble } from './trouble.tsx'

const FIRST = ['ann', 'bob']
const MOST_PHONES = 12

function Chat() {
  const { news, lost } = useNews()
  const [added, setAdded] = useState<string[]>([])
  const [closed, setClosed] = useState<string[]>([])
  const add = (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget
    if (!(form instanceof HTMLFormElement)) return
    const user = idOf(String(new FormData(form).get('user') ?? '').trim())
    if (user === '') return
    setAdded([...added.filter((one) => one !== user), user])
    setClosed(closed.filter((one) => one !== user))
    form.reset()
  }
  const shown = usersShown(news, added).filter((user) => !closed.includes(user))
  return (
    <>
      <header class="bar wide">
        <div>
          <Brand part="sim" />
          <span class="grow small soft about">A stand-in for the messaging service: write as its users.</span>
          <State news={news} lost={lost} />
        </div>
      </header>
      <main class="room">
        <div class="phones">
          {news === null && !lost && <Waiting />}
          {news !== null &&
            shown.map((user) => {
              const known = news.users.find(({ user_id }) => user_id === user)
              return (
                <Phone
                  key={user}
                  user={user}
                  count={known?.messages ?? 0}
                  typing={known?.typing ?? false}
                  onClose={shown.length > 1 ? () => setClosed([...closed, user]) : null}
                />
              )
            })}
          <form class="another stack tight" onSubmit={add}>
            <label class="field">
              <span>Another user</span>
              <input name="user" required maxLength={200} autocomplete="off" placeholder="cat" />
            </label>
            <button type="submit" class="button">
              Open a chat
            </button>
          </form>
        </div>
        <aside class="stack" aria-label="Tools">
          <Trouble faults={news?.faults ?? []} />
          <Scanner codes={news?.codes ?? []} />
          <p class="small soft">
            All of this can be done with curl too: <code>curl {location.origin}/</code> lists the calls.
          </p>
        </aside>
      </main>
    </>
  )
}

/** Whether a bot is there to answer. */
function State({ news, lost }: { news: NewsAnswer | null; lost: boolean }) {
  const connected = news?.bots.some(({ polls_in_flight }) => polls_in_flight > 0) ?? false
  const started = news?.bots.some((bot) => bot.started) ?? false
  const [text, tone] = lost
    ? ['No answer', 'bad']
    : news === null
      ? ['Loading…', '']
      : connected || started
        ? ['Bot connected', 'good']
        : ['No bot', 'warn']
  return (
    <span class={`state ${tone || 'soft'}`} role="status">
      <span class={`dot ${tone}`} />
      {text}
    </span>
  )
}

/** Those who were opened and those who have spoken; two to begin with. */
function usersShown(news: NewsAnswer | null, added: string[]): string[] {
  const spoke = news?.users.map(({ user_id }) => user_id).sort() ?? []
  const first = spoke.length + added.length === 0 ? FIRST.map(idOf) : []
  return [...new Set([...first, ...spoke.slice(0, MOST_PHONES), ...added])]
}

function idOf(name: string): string {
  return name === '' || name.includes('@') ? name : `${name}@im.wechat`
}

const app = document.getElementById('app')
if (app) render(<Chat />, app)
