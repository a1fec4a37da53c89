import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { silentLog } from '../kit/log.ts'
import { type LinkView, linkText, openLink } from './link.ts'

const START = 1_700_000_000_000
const SILENT_AFTER_MS = 70_000

function newLink() {
  let at = START
  const link = openLink({ account: 'main', now: () => at, log: silentLog, silentAfterMs: SILENT_AFTER_MS })
  const changes: LinkView[] = []
  link.onChange((view) => changes.push(view))
  return {
    link,
    changes,
    advance(ms: number) {
      at += ms
    },
  }
}

verifies(['upstream:link:states', 'upstream:link:detail'], () => {
  const { link, advance } = newLink()
  const seen = [link.view()]
  const step = (change: () => void) => {
    advance(1_000)
    change()
    seen.push(link.view())
  }
  step(() => link.connected('the service answered'))
  step(() => link.throttled(START + 30_000))
  step(() => link.failed('reconnecting', 'getupdates failed (ECONNREFUSED)', START + 9_000))
  step(() => link.failed('needs_login', 'the service answered -14', START + 10_000))
  step(() => link.failed('misconfigured', 'getupdates was answered with HTTP 404', START + 11_000))
  const quiet = { action: null, lastPollAt: null }
  expect(seen).toEqual([
    { ...quiet, state: 'connecting', reason: 'starting', since: START, nextRetryAt: null },
    { ...quiet, state: 'connected', reason: 'the service answered', since: START + 1_000, nextRetryAt: null },
    {
      ...quiet,
      state: 'throttled',
      reason: 'sends are held back by the service',
      since: START + 2_000,
      nextRetryAt: START + 30_000,
    },
    {
      ...quiet,
      state: 'reconnecting',
      reason: 'getupdates failed (ECONNREFUSED)',
      since: START + 3_000,
      nextRetryAt: START + 9_000,
    },
    {
      state: 'needs_login',
      reason: 'the service answered -14',
      since: START + 4_000,
      nextRetryAt: START + 10_000,
      action: expect.stringContaining('Log in again'),
      lastPollAt: null,
    },
    {
      state: 'misconfigured',
      reason: 'getupdates was answered with HTTP 404',
      since: START + 5_000,
      nextRetryAt: START + 11_000,
      action: expect.stringContaining('--upstream-url'),
      lastPollAt: null,
    },
  ])
})

test('only connected and throttled count as up', () => {
  const { link } = newLink()
  const up = [link.isUp()]
  link.connected('yes')
  up.push(link.isUp())
  link.throttled(START + 1_000)
  up.push(link.isUp())
  for (const state of ['reconnecting', 'needs_login', 'misconfigured'] as const) {
    link.failed(state, 'no', null)
    up.push(link.isUp())
  }
  expect(up).toEqual([false, true, true, false, false, false])
  expect(linkText(link)).toContain('being restored')
  link.pollCompleted()
  expect(linkText(link)).toContain('fine')
})

verifies('upstream:link:watchdog', 'with no completed poll for two holds the link is down, whatever it was', () => {
  const { link, advance } = newLink()
  link.connected('the service answered')
  advance(SILENT_AFTER_MS)
  expect(link.view().state).toBe('connected')
  advance(1)
  expect(link.view()).toMatchObject({
    state: 'reconnecting',
    reason: 'no poll was answered for too long',
    since: START + SILENT_AFTER_MS,
  })
  expect(link.isUp()).toBe(false)
  // Saying hello is no poll; an answered poll is, an empty one too.
  link.connected('the service answered')
  expect(link.isUp()).toBe(false)
  link.pollCompleted()
  expect(link.view()).toMatchObject({ state: 'connected', lastPollAt: START + SILENT_AFTER_MS + 1 })
  advance(SILENT_AFTER_MS)
  expect(link.isUp()).toBe(true)
  // Throttling does not hide silence.
  link.throttled(START + 10 * SILENT_AFTER_MS)
  advance(1)
  expect(link.view().state).toBe('reconnecting')
})

test('throttling ends by itself, and never gets shorter', () => {
  const { link, advance } = newLink()
  link.pollCompleted()
  link.throttled(START + 5_000)
  link.throttled(START + 1_000)
  advance(2_000)
  expect(link.view()).toMatchObject({ state: 'throttled', since: START, nextRetryAt: START + 5_000 })
  advance(3_000)
  expect(link.view()).toMatchObject({ state: 'connected', nextRetryAt: null })
  link.throttled(START + 9_000)
  expect(link.view()).toMatchObject({ state: 'throttled', since: START + 5_000 })
})

test('a change is told once, however often the same failure repeats', () => {
  const { link, changes, advance } = newLink()
  for (let n = 1; n <= 5; n += 1) {
    advance(1_000)
    link.failed('reconnecting', `try ${n}`, START + n)
  }
  expect(changes.map(({ state }) => state)).toEqual(['reconnecting'])
  expect(link.view()).toMatchObject({ reason: 'try 5', since: START + 1_000, nextRetryAt: START + 5 })
  link.pollCompleted()
  link.pollCompleted()
  expect(changes.map(({ state }) => state)).toEqual(['reconnecting', 'connected'])
})
