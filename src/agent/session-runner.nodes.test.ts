import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { memoryDoorbell } from '../kit/doorbell.ts'
import { AppError } from '../kit/errors.ts'
import type { Claim } from '../kit/lease.ts'
import { newRun } from './core-fixture.contract.ts'
import { scriptedProvider } from './provider/scripted.ts'
import { runnerBench } from './session-runner-fixture.contract.ts'
import { memoryStore } from './store/memory.ts'
import type { AgentStore } from './store/port.ts'

const STALLS = scriptedProvider([[{ text: 'Thinking' }, { stall: 'forever' }]])
const REFUSE = { receipt: null, whenBusy: 'refuse' } as const
const TALKS = scriptedProvider({ turns: [], after: 'Hello.' })

/** A store whose claims can be lost, as when their owner was taken for dead. */
function losingStore(): AgentStore & { claims: Claim[] } {
  const store = memoryStore()
  const claims: Claim[] = []
  const { admit } = store.runs
  store.runs.admit = async (run, options) => {
    const admission = await admit(run, options)
    if (admission.claim) claims.push(admission.claim)
    return admission
  }
  return { ...store, claims }
}

async function loseClaims({ leases, claims }: ReturnType<typeof losingStore>): Promise<void> {
  for (const claim of claims) await leases.release(claim)
}

/** Two runners on one store and one doorbell, as two nodes would be. */
async function twoNodes(provider = STALLS) {
  const store = losingStore()
  const doorbell = memoryDoorbell()
  const one = await runnerBench(provider, { store, options: { doorbell } })
  const other = await runnerBench(provider, { store, options: { doorbell } })
  return { store, one, other }
}

describe('with another node', () => {
  test('a run is cancelled from where it does not run', async () => {
    const { one, other } = await twoNodes()
    await one.submit('go')
    await one.until('partial_message')
    expect(await other.runner.cancel('s1')).toBe(true)
    expect(await one.told('done')).toMatchObject([{ finish_reason: 'Cancelled' }])
    expect(one.finished).toEqual(['Cancelled'])
    expect(other.finished).toEqual([])
  })

  test('what lives there is left alone, and what is left behind ends here', async () => {
    const { store, one, other } = await twoNodes()
    await one.submit('go')
    await one.until('partial_message')
    await other.runner.sweep()
    expect(await one.told('done')).toEqual([])
    await loseClaims(store)
    await other.runner.sweep()
    expect(await other.told('done')).toMatchObject([{ finish_reason: 'Interrupted' }])
    expect(other.finished).toEqual(['Interrupted'])
    await one.runner.stop()
    expect(one.finished).toEqual([])
    expect(await other.told('done')).toHaveLength(1)
  })

  test('who loses its claim stops working, and writes nothing more', async () => {
    const store = losingStore()
    const bench = await runnerBench(STALLS, { store, options: { renewEveryMs: 5 } })
    await bench.submit('go')
    await bench.until('partial_message')
    const before = (await bench.events()).length
    await loseClaims(store)
    await expect.poll(() => bench.runner.active).toBe(0)
    expect(await bench.events()).toHaveLength(before)
    expect(bench.finished).toEqual([])
  })
})

describe('while the store cannot write', () => {
  test('the end of a run is kept as soon as it can', async () => {
    const bench = await runnerBench(TALKS)
    const { append } = bench.store.log
    let failures = 0
    bench.store.log.append = async (claim, entry) => {
      const isEnd = entry.events.some(({ type }) => type === 'done')
      if (isEnd && failures++ < 2) throw new AppError('store_failed', 'The disk is full.')
      return append(claim, entry)
    }
    await bench.submit('go')
    await bench.until('done')
    expect(failures).toBe(3)
    expect(bench.finished).toEqual(['NoMoreToolCalls'])
  })

  verifies('agentstore:disk:cancel', async () => {
    const bench = await runnerBench(STALLS)
    const { append } = bench.store.log
    const { admit } = bench.store.runs
    let full = false
    const fill = () => {
      if (full) throw new AppError('store_failed', 'The disk is full.')
    }
    bench.store.log.append = async (claim, entry) => {
      if (entry.events.some(({ type }) => type === 'done')) fill()
      return append(claim, entry)
    }
    bench.store.runs.admit = async (run, options) => {
      fill()
      return admit(run, options)
    }
    await bench.submit('go')
    await bench.until('partial_message')
    full = true
    await expect(bench.runner.cancel('s1')).rejects.toMatchObject({ code: 'store_failed' })
    await expect(bench.runner.forget('s1')).rejects.toMatchObject({ code: 'store_failed' })
    await expect(bench.submit('other', { whenBusy: 'interrupt' })).rejects.toMatchObject({ code: 'store_failed' })
    full = false
    await bench.until('done')
    expect(bench.finished).toEqual(['Cancelled'])
    await expect(bench.runner.cancel('s1')).resolves.toEqual(expect.any(Boolean))
  })

  test('a run ends with an error that says so', async () => {
    const bench = await runnerBench(TALKS)
    const { append } = bench.store.log
    bench.store.log.append = async (claim, entry) => {
      if (entry.events.some(({ type }) => type === 'message')) throw new AppError('store_failed', 'The disk is full.')
      return append(claim, entry)
    }
    await bench.submit('go')
    await bench.until('done')
    expect(await bench.told('error')).toMatchObject([{ code: 'store_failed' }])
  })
})

test('queued runs of other sessions wait for room among all that run', async () => {
  const bench = await runnerBench(STALLS, { options: { maxConcurrentRuns: 1 } })
  await bench.store.sessions.create({ ...bench.session, id: 's2' }, null)
  const orphan = await bench.store.runs.admit(newRun('a', 's2'), REFUSE)
  await bench.store.runs.admit(newRun('b', 's2'), { receipt: null, whenBusy: 'enqueue' })
  await bench.submit('go')
  await bench.until('partial_message')
  if (orphan.claim) await bench.store.leases.release(orphan.claim)
  await bench.runner.sweep()
  expect((await bench.store.runs.list('s2')).map(({ status }) => status)).toEqual(['finished', 'queued'])
  await bench.runner.cancel('s1')
  await expect
    .poll(async () => (await bench.store.runs.list('s2')).map(({ status }) => status))
    .toEqual(['finished', 'running'])
  await bench.runner.stop()
})

test('a session that cannot be read now holds up neither a start nor the others', async () => {
  const store = memoryStore()
  let isAway = true
  const transcript: typeof store.log.transcript = async (id) => {
    if (id !== 's3' && isAway)
      throw new AppError('store_failed', 'The object store cannot be used now; try again shortly.')
    return store.log.transcript(id)
  }
  const bench = await runnerBench(STALLS, { store: { ...store, log: { ...store.log, transcript } } })
  for (const id of ['s2', 's3', 's4']) {
    await store.sessions.create({ ...bench.session, id }, null)
    const { claim, run } = await store.runs.admit(newRun('a', id), REFUSE)
    if (claim === null) throw new Error('the session is free')
    const events = [{ type: 'run_started', goal: 'a', model: 'demo' } as const]
    // Of the last one nothing is written yet, so nothing has to be read to end it.
    if (id !== 's4') await store.log.append(claim, { now: 1, runId: run.id, events, messages: [] })
    await store.leases.release(claim)
  }
  const statuses = async () =>
    Promise.all(['s2', 's3', 's4'].map(async (id) => (await store.runs.list(id)).map(({ status }) => status).join()))
  expect(await bench.runner.recover()).toBe(3)
  expect(await statuses()).toEqual(['running', 'finished', 'finished'])
  await bench.runner.sweep()
  expect(await statuses()).toEqual(['running', 'finished', 'finished'])
  isAway = false
  await bench.runner.sweep()
  expect(await statuses()).toEqual(['finished', 'finished', 'finished'])
})
