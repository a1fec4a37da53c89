import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { gate } from '../../test/support/gate.ts'
import { verifies } from '../../test/support/verifies.ts'
import { silentLog } from '../kit/log.ts'
import { openLink } from './link.ts'
import { type PollerOptions, pollUpstream } from './poller.ts'
import { type UpstreamBatch, UpstreamError } from './upstream/port.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

type Poll = (cursor: string, signal: AbortSignal) => UpstreamBatch | Promise<UpstreamBatch>

const EMPTY: UpstreamBatch = { messages: [], cursor: null }
const refused = () => Promise.reject(new UpstreamError('unreachable', 'getupdates failed (ECONNREFUSED)'))
const expired = () => Promise.reject(new UpstreamError('expired', 'the service answered -14', { upstreamCode: -14 }))
const batch = (cursor: string | null, ...messages: string[]) => ({ messages, cursor })

/** A poll that is held until the poller is stopped. */
const held: Poll = (_cursor, signal) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new UpstreamError('unreachable', 'getupdates was given up')))
  })

interface Script {
  /** What each poll gets; all later ones what `later` says, or they are held. */
  polls?: Poll[]
  later?: Poll
  notify?: () => Promise<void>
  keep?: (batches: readonly UpstreamBatch[]) => Promise<void>
  cursor?: string
  inbox?: PollerOptions['inbox']
}

function startPoller({
  polls = [],
  later = held,
  notify = async () => {},
  keep = async () => {},
  cursor = '',
  inbox = null,
}: Script) {
  /** What was done, in order: `notify`, `poll <cursor>`, `keep <messages>`. */
  const done: string[] = []
  const link = openLink({ account: 'main', now: Date.now, log: silentLog, silentAfterMs: 70_000 })
  const states: string[] = []
  link.onChange(({ state }) => states.push(state))
  const stopping = new AbortController()
  const script = [...polls]
  const ended = pollUpstream(
    {
      upstream: {
        async notify(what) {
          done.push(what === 'start' ? 'notify' : 'goodbye')
          await notify()
        },
        async poll(at, signal) {
          done.push(`poll ${at}`)
          return (script.shift() ?? later)(at, signal)
        },
      },
      link,
      intake: {
        read: (one) => ({ ...one, at: 0, inbounds: [] }),
        take(batches) {
          done.push(`keep ${batches.flatMap(({ messages }) => messages).join()}`)
          return keep(batches)
        },
      },
      inbox,
      cursor,
      now: Date.now,
      log: silentLog,
    },
    stopping.signal,
  )
  onTestFinished(() => stopping.abort())
  return {
    done,
    link,
    states,
    ended,
    stop: () => stopping.abort(),
    polls: () => done.filter((one) => /^poll/.test(one)),
  }
}

/** Lets everything happen that needs no time. */
const settle = () => vi.advanceTimersByTimeAsync(0)

verifies(['upstream:poll:notifystart', 'upstream:link:connected'], async () => {
  const hello = gate()
  const { done, link } = startPoller({ notify: hello.pass })
  await settle()
  expect([done, link.view().state]).toEqual([['notify'], 'connecting'])
  hello.open()
  await settle()
  expect([done, link.view().state]).toEqual([['notify', 'poll '], 'connected'])
})

verifies(
  'upstream:poll:resumes',
  'polling starts at the stored cursor and goes on where each answer says',
  async () => {
    const { polls } = startPoller({
      cursor: 'stored',
      polls: [() => batch('c1', '1'), () => batch(null, '2'), () => batch('c2'), () => EMPTY],
    })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(polls()).toEqual(['poll stored', 'poll c1', 'poll c1', 'poll c2', 'poll c2'])
  },
)

test('a batch is kept before the next poll, and an empty answer with an old cursor is not kept at all', async () => {
  const commit = gate()
  const { done } = startPoller({ polls: [() => batch('c1', 'a', 'b')], keep: commit.pass })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(done).toEqual(['notify', 'poll ', 'keep a,b'])
  commit.open()
  await settle()
  expect(done).toEqual(['notify', 'poll ', 'keep a,b', 'poll c1'])

  const idle = startPoller({ cursor: 'c1', polls: [() => EMPTY, () => batch('c1'), () => batch('c2')] })
  await vi.advanceTimersByTimeAsync(5_000)
  expect(idle.done.filter((one) => one.startsWith('keep'))).toEqual(['keep '])
})

test('a batch that cannot be stored is tried again and again, without a poll in between', async () => {
  let tries = 0
  const kept: UpstreamBatch[] = []
  const { done, polls } = startPoller({
    polls: [() => batch('c1', 'a')],
    async keep(batches) {
      tries += 1
      if (tries < 20) throw new Error('the disk is full')
      kept.push(...batches)
    },
  })
  await vi.advanceTimersByTimeAsync(120_000)
  expect(kept).toMatchObject([batch('c1', 'a')])
  expect(polls()).toEqual(['poll ', 'poll c1'])
  expect(done.filter((one) => one === 'keep a')).toHaveLength(20)
})

verifies('upstream:session:one-retry', async () => {
  const { done, link, states } = startPoller({ later: expired })
  await settle()
  expect(done).toEqual(['notify', 'poll ', 'notify', 'poll '])
  expect(states).toEqual(['connected', 'needs_login'])
  expect(link.view()).toMatchObject({ reason: 'the service answered -14', action: expect.stringContaining('Log in') })
  // From then on it asks now and then, neither hot nor hourly, and hello alone does not count as logged in.
  await vi.advanceTimersByTimeAsync(10 * 60_000)
  expect(done.length).toBeGreaterThan(2 * 20)
  expect(done.length).toBeLessThan(2 * 60)
  expect(states).toEqual(['connected', 'needs_login'])
})

verifies('upstream:session:one-retry', 'when the second poll is answered nobody is called', async () => {
  const { done, states } = startPoller({ polls: [expired, () => batch('c1', 'a'), expired, () => batch('c2', 'b')] })
  await settle()
  expect(done).toEqual([
    ...['notify', 'poll '],
    ...['notify', 'poll ', 'keep a'],
    ...['poll c1', 'notify', 'poll c1', 'keep b'],
    'poll c2',
  ])
  expect(states).toEqual(['connected'])
})

test('a login that is renewed is noticed by the next answered poll', async () => {
  const { link, states } = startPoller({ polls: [expired, expired, expired, () => batch('c1', 'a')] })
  await vi.advanceTimersByTimeAsync(3_000)
  expect(states).toEqual(['connected', 'needs_login', 'connected'])
  expect(link.view()).toMatchObject({ state: 'connected', action: null })
})

verifies('upstream:poll:backoff', async () => {
  const pauses: number[] = []
  let failures = 0
  const { link, polls } = startPoller({
    later: (cursor, signal) => {
      failures += 1
      return failures === 9 ? batch('c1', 'a') : failures > 11 ? held(cursor, signal) : refused()
    },
  })
  for (let seen = 0; seen < 10; ) {
    await settle()
    const { nextRetryAt } = link.view()
    if (nextRetryAt === null) throw new Error('no next try is told')
    seen += 1
    const pauseMs = nextRetryAt - Date.now()
    pauses.push(pauseMs)
    const before = polls().length
    await vi.advanceTimersByTimeAsync(pauseMs - 1)
    expect(polls()).toHaveLength(before)
    await vi.advanceTimersByTimeAsync(1)
    expect(polls().length).toBeGreaterThan(before)
  }
  const steps = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 1_000, 2_000]
  for (const [index, most] of steps.entries()) {
    expect(pauses[index], `pause ${index + 1}`).toBeLessThanOrEqual(most)
    expect(pauses[index], `pause ${index + 1}`).toBeGreaterThanOrEqual(most / 2)
  }
  expect(pauses.filter((pause, index) => pause !== steps[index]).length).toBeGreaterThan(3)
})

verifies('upstream:link:refused', async () => {
  const reset = gate()
  const { link } = startPoller({
    polls: [
      () =>
        reset
          .pass()
          .then(() =>
            Promise.reject(new UpstreamError('unreachable', 'getupdates failed (ECONNRESET)', { ambiguous: true })),
          ),
    ],
    later: refused,
  })
  await settle()
  expect(link.isUp()).toBe(true)
  reset.open()
  await settle()
  expect(link.view()).toMatchObject({ state: 'reconnecting', reason: 'getupdates failed (ECONNRESET)', action: null })

  const down = startPoller({ notify: refused })
  await settle()
  expect(down.link.view()).toMatchObject({ state: 'reconnecting', reason: 'getupdates failed (ECONNREFUSED)' })
  // With nobody there to say hello to, a poll is of no use.
  expect(down.done).toEqual(['notify'])
})

test.each([
  ['is answered with HTTP 500', new UpstreamError('unreachable', 'x', { upstreamCode: 500, ambiguous: true })],
  ['is not known', new UpstreamError('bad_answer', 'x', { upstreamCode: 404 })],
  ['breaks in a way nobody foresaw', new Error('bug')],
])('when notifystart %s the poll is made all the same, and decides', async (_how, error) => {
  const { done, link } = startPoller({ notify: () => Promise.reject(error) })
  await settle()
  expect(done).toEqual(['notify', 'poll '])
  expect(link.view().state).toBe('connecting')
  await vi.advanceTimersByTimeAsync(1_500)
  expect(link.view()).toMatchObject({ state: 'connected', reason: 'a poll is open' })
})

verifies(
  'upstream:link:connected',
  'after a failure an open poll counts, one that has just begun does not',
  async () => {
    const { link } = startPoller({ polls: [refused], notify: () => Promise.reject(new UpstreamError('expired', 'x')) })
    await settle()
    expect(link.view().state).toBe('reconnecting')
    await vi.advanceTimersByTimeAsync(1_000)
    expect(link.view().state).toBe('reconnecting')
    await vi.advanceTimersByTimeAsync(1_500)
    expect(link.view().state).toBe('connected')
  },
)

test('a wrong address is told as such, without swinging back and forth', async () => {
  const wrong = () => Promise.reject(new UpstreamError('bad_answer', 'answered with HTTP 404', { upstreamCode: 404 }))
  const { link, states } = startPoller({ later: wrong, notify: wrong })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(states).toEqual(['misconfigured'])
  expect(link.view().action).toContain('--upstream-url')
})

test('an answer that is garbled once is only a reconnect', async () => {
  const garbled = () => Promise.reject(new UpstreamError('bad_answer', 'the answer is not JSON'))
  const { states } = startPoller({ polls: [garbled, () => batch('c1', 'a')] })
  await vi.advanceTimersByTimeAsync(1_000)
  expect(states).toEqual(['connected', 'reconnecting', 'connected'])
})

test('a bug in the way of a poll does not end the polling', async () => {
  const { states, polls } = startPoller({ polls: [() => Promise.reject(new TypeError('bug'))] })
  await vi.advanceTimersByTimeAsync(1_000)
  expect(polls()).toHaveLength(2)
  expect(states).toEqual(['connected', 'reconnecting', 'connected'])
})

test.each([
  ['empty', () => EMPTY],
  ['empty with ever new cursors', () => batch(String(Math.random()))],
  ['the same messages without a new cursor', () => batch(null, 'a')],
])('answers that come at once and are %s do not make a hot loop', async (_what, answer: Poll) => {
  const { polls } = startPoller({ later: answer })
  await vi.advanceTimersByTimeAsync(20_000)
  expect(polls().length).toBeGreaterThan(10)
  expect(polls().length).toBeLessThan(40)
})

test('a stream of messages is fetched without a pause', async () => {
  let sent = 0
  const { polls } = startPoller({
    later: (cursor, signal) => {
      sent += 1
      return sent > 500 ? held(cursor, signal) : batch(`c${sent}`, 'a')
    },
  })
  await settle()
  expect(polls()).toHaveLength(501)
})

test('an abort ends it wherever it is: in a poll, in a pause, in a commit that fails', async () => {
  const places = [
    startPoller({}),
    startPoller({ later: refused }),
    startPoller({ notify: refused }),
    startPoller({ later: expired }),
    startPoller({ later: () => EMPTY }),
    startPoller({ later: () => batch('c1', 'a'), keep: () => Promise.reject(new Error('full')) }),
  ]
  await vi.advanceTimersByTimeAsync(500)
  for (const { stop, ended, done, link } of places) {
    stop()
    await ended
    const [calls, state] = [done.length, link.view().state]
    await vi.advanceTimersByTimeAsync(60_000)
    // Being stopped is no failure.
    expect([done.length, link.view().state]).toEqual([calls, state])
  }
})

/** A poll that fails after a while. */
const failsAfter =
  (ms: number, error: UpstreamError): Poll =>
  () =>
    new Promise((_resolve, reject) => setTimeout(() => reject(error), ms))

const silent = new UpstreamError('unreachable', 'getupdates was not answered in time', {
  ambiguous: true,
  timedOut: true,
})

/** Which of the states it was in, second by second. */
async function watch(link: { isUp(): boolean }, seconds: number): Promise<number> {
  let up = 0
  for (let second = 0; second < seconds; second++) {
    await vi.advanceTimersByTimeAsync(1_000)
    if (link.isUp()) up += 1
  }
  return up
}

test('a service that takes every call and answers none is not connected, however long it is polled', async () => {
  const hang = () => new Promise<void>((_resolve, reject) => setTimeout(() => reject(silent), 10_000))
  const { link } = startPoller({ notify: hang, later: failsAfter(45_000, silent) })
  expect(await watch(link, 300)).toBe(0)
})

test('a service that only answers hello is not connected once a poll was never answered', async () => {
  const { link } = startPoller({ later: failsAfter(45_000, silent) })
  await watch(link, 46)
  expect(await watch(link, 300)).toBe(0)
})

test('refusals that come late do not make the link swing', async () => {
  const late = [
    new UpstreamError('expired', 'the service answered -14', { upstreamCode: -14 }),
    new UpstreamError('unreachable', 'getupdates was answered with HTTP 502', { upstreamCode: 502, ambiguous: true }),
  ]
  for (const error of late) {
    const { link } = startPoller({ later: failsAfter(6_000, error) })
    await watch(link, 20)
    expect(await watch(link, 200)).toBe(0)
  }
})

verifies('upstream:link:recovers', 'after a silence the next answered poll is enough', async () => {
  const { link } = startPoller({
    polls: [failsAfter(45_000, silent)],
    later: () => new Promise((resolve) => setTimeout(resolve, 30_000, EMPTY)),
  })
  await watch(link, 46)
  expect(link.isUp()).toBe(false)
  await watch(link, 35)
  expect(link.isUp()).toBe(true)
})
