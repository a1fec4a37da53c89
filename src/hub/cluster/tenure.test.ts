import { expect, onTestFinished, test, vi } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import type { Claim, Lease } from '../../kit/lease.ts'
import { silentLog } from '../../kit/log.ts'
import { guardedUpstream } from '../upstream/guarded.ts'
import { beginTenure } from './tenure.ts'

const CLAIM: Claim = { key: 'hub', generation: 1 }
const LEASE_MS = 15_000

/** A tenure by a clock of the test's own; renewals are never answered unless `lease` says otherwise. */
async function begin({
  lease = {},
  leaseMs = LEASE_MS,
  claimTakesMs = 0,
}: {
  lease?: Partial<Lease>
  leaseMs?: number
  claimTakesMs?: number
} = {}) {
  let nowMs = 0
  const clock = { pass: (ms: number) => (nowMs += ms) }
  const elapsed = () => {
    const from = nowMs
    return () => nowMs - from
  }
  const claim = async () => {
    clock.pass(claimTakesMs)
    return CLAIM
  }
  const silent = { claim, renew: () => new Promise<Claim[]>(() => {}) }
  const tenure = await beginTenure('hub', { lease: { ...silent, ...lease }, leaseMs, logger: silentLog, elapsed })
  if (tenure === null) throw new Error('there is no tenure')
  onTestFinished(() => tenure.end())
  return { tenure, clock }
}

verifies('nodes:lease:asleep', 'who slept for longer than the lease knows at once that it leads no more', async () => {
  const { tenure, clock } = await begin()
  expect(tenure.holds()).toBe(true)
  clock.pass(LEASE_MS - 1)
  expect(tenure.holds()).toBe(true)
  clock.pass(1)
  expect(tenure.holds()).toBe(false)
  expect(tenure.over.aborted).toBe(true)
})

verifies('nodes:lease:asleep', 'and then it calls the service no more', async () => {
  const { tenure, clock } = await begin()
  const poll = vi.fn(async () => ({ messages: [], cursor: null }))
  const never = async () => {
    throw new Error('not called')
  }
  const rest = { notify: never, send: never, typing: never, typingTicket: never, uploadUrl: never, close: never }
  const upstream = guardedUpstream({ poll, ...rest }, tenure.holds)
  const { signal } = new AbortController()
  await upstream.poll('', signal)
  clock.pass(LEASE_MS)
  const refused = { kind: 'unreachable', ambiguous: false }
  await expect(upstream.poll('', signal)).rejects.toMatchObject(refused)
  await expect(upstream.notify('stop', signal)).rejects.toMatchObject(refused)
  await expect(upstream.send({ userId: 'u', contextToken: null, body: '{}' }, signal)).rejects.toMatchObject(refused)
  expect(poll).toHaveBeenCalledOnce()
})

test('time counts from before the database was asked', async () => {
  const { tenure, clock } = await begin({ claimTakesMs: 10_000 })
  expect(tenure.holds()).toBe(true)
  clock.pass(5_000)
  expect(tenure.holds()).toBe(false)
})

test('it is over when another has the lease, and when the database fails for too long', async () => {
  const lost = await begin({ lease: { renew: async (claims) => [...claims] }, leaseMs: 30 })
  await expect.poll(() => lost.tenure.over.aborted).toBe(true)
  const clocks: ((ms: number) => void)[] = []
  const failing = async () => {
    for (const pass of clocks) pass(25)
    throw new Error('no database')
  }
  const { tenure, clock } = await begin({ lease: { renew: failing }, leaseMs: 30 })
  clocks.push(clock.pass)
  await expect.poll(() => tenure.over.aborted).toBe(true)
})

test('there is none while another leads', async () => {
  const lease = { claim: async () => null, renew: async () => [] }
  expect(await beginTenure('hub', { lease, leaseMs: LEASE_MS, logger: silentLog })).toBeNull()
})
