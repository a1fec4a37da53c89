import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Gate, gate } from '../../test/support/gate.ts'
import { verifies } from '../../test/support/verifies.ts'
import { silentLog } from '../kit/log.ts'
import { openTyping, type TypingTarget } from './typing.ts'
import { UpstreamError } from './upstream/port.ts'

const ANN = { clientId: 1, account: 'main', userId: 'Ann@im.wechat', contextToken: 'ctx' }
const BEN = { clientId: 2, account: 'main', userId: 'ben@im.wechat', contextToken: null }
const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

describe('the ticket', () => {
  verifies('typing:ticket:cached', async () => {
    const { typing, calls, tickets } = fakeService()
    for (let minute = 0; minute < 8; minute += 1) {
      await typing.start(ANN)
      await pass(MINUTE_MS)
    }
    expect(tickets).toHaveLength(1)
    for (let minute = 8; minute < 45; minute += 1) {
      await typing.start(ANN)
      await pass(MINUTE_MS)
    }
    expect(tickets.length).toBeLessThan(7)
    expect(calls.map(({ ticketAgeMs }) => ticketAgeMs < 10 * MINUTE_MS)).not.toContain(false)
  })

  test('is asked for with the user and the newest context, one for each user', async () => {
    const { typing, tickets } = fakeService()
    await typing.start(ANN)
    await typing.start(BEN)
    await typing.start({ ...ANN, userId: ANN.userId.toLowerCase() })
    expect(tickets.map(({ userId, contextToken }) => [userId, contextToken])).toEqual([
      [ANN.userId, 'ctx'],
      [BEN.userId, null],
    ])
  })

  test('is asked for anew when the service did not take it', async () => {
    const service = fakeService()
    await service.typing.start(ANN)
    service.failWith(new UpstreamError('refused', 'no'))
    await expect(service.typing.start(ANN)).rejects.toThrow('no')
    service.failWith(null)
    await service.typing.start(ANN)
    expect(service.tickets).toHaveLength(2)
  })
})

describe('the indicator', () => {
  verifies('typing:ticket:renewed', async () => {
    const { typing, said } = fakeService()
    await typing.start(ANN)
    await pass(21 * SECOND_MS)
    expect(said().filter((word) => word === 'on').length).toBeGreaterThanOrEqual(4)
    for (let asked = 0; asked < 10; asked += 1) {
      await typing.start(ANN)
      await pass(30 * SECOND_MS)
      expect(said()).not.toContain('off')
    }
  })

  verifies('typing:cancel:timeout', async () => {
    const { typing, said } = fakeService()
    await typing.start(ANN)
    await pass(30 * SECOND_MS)
    await typing.start(ANN)
    await pass(59 * SECOND_MS)
    expect(said()).not.toContain('off')
    await pass(6 * SECOND_MS)
    expect(said().at(-1)).toBe('off')
    const count = said().length
    await pass(10 * MINUTE_MS)
    expect(said()).toHaveLength(count)
    expect(vi.getTimerCount()).toBe(0)
  })

  verifies('typing:cancel:reply', async () => {
    const { typing, said } = fakeService()
    await typing.start(ANN)
    typing.stop({ account: 'main', userId: ANN.userId.toUpperCase() })
    await pass(0)
    expect(said()).toEqual(['on', 'off'])
    typing.stop(ANN)
    await pass(2 * MINUTE_MS)
    expect(said()).toEqual(['on', 'off'])
  })

  verifies('typing:cancel:reply', 'a reply that comes while the start is under way ends it after it', async () => {
    const service = fakeService()
    const hold = service.hold()
    const starting = service.typing.start(ANN)
    await hold.reached
    service.typing.stop(ANN)
    hold.open()
    await starting
    await pass(2 * MINUTE_MS)
    expect(service.said()).toEqual(['on', 'off'])
  })

  verifies('typing:cancel:disconnect', async () => {
    const { typing, calls } = fakeService()
    await typing.start(ANN)
    await typing.start(BEN)
    typing.stopClient(ANN.clientId)
    await pass(0)
    expect(calls.filter(({ on }) => !on).map(({ userId }) => userId)).toEqual([ANN.userId])
    typing.close()
    await pass(0)
    expect(calls.filter(({ on }) => !on).map(({ userId }) => userId)).toEqual([ANN.userId, BEN.userId])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('of nobody is not ended', async () => {
    const { typing, said, tickets } = fakeService()
    typing.stop(ANN)
    typing.stopClient(1)
    await pass(MINUTE_MS)
    expect(said()).toEqual([])
    expect(tickets).toEqual([])
  })

  test('an end that fails is nobody’s trouble', async () => {
    const service = fakeService()
    await service.typing.start(ANN)
    service.failWith(new UpstreamError('unreachable', 'down'))
    expect(() => service.typing.stop(ANN)).not.toThrow()
    await pass(MINUTE_MS)
    expect(service.said()).toEqual(['on', 'off'])
  })

  test('a renewal that fails does not end the renewing', async () => {
    const service = fakeService()
    await service.typing.start(ANN)
    service.failWith(new UpstreamError('unreachable', 'down'))
    await pass(11 * SECOND_MS)
    service.failWith(null)
    await pass(11 * SECOND_MS)
    service.typing.stop(ANN)
    await pass(0)
    expect(service.said().at(-1)).toBe('off')
  })
})

describe('a start that fails', () => {
  test('is told, and leaves nothing to renew', async () => {
    const service = fakeService()
    service.failWith(new UpstreamError('refused', 'no'))
    await expect(service.typing.start(ANN)).rejects.toThrow('no')
    await pass(MINUTE_MS)
    expect(service.said()).toEqual(['on'])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('but may have been carried out, is ended', async () => {
    const service = fakeService()
    service.failWith(new UpstreamError('unreachable', 'reset', { ambiguous: true }))
    await expect(service.typing.start(ANN)).rejects.toThrow('reset')
    await pass(0)
    expect(service.said()).toEqual(['on', 'off'])
  })

  verifies('typing:cancel:timeout', 'when it showed before, it is ended in its time all the same', async () => {
    const service = fakeService()
    await service.typing.start(ANN)
    service.failWith(new UpstreamError('refused', 'no'))
    await expect(service.typing.start(ANN)).rejects.toThrow('no')
    service.failWith(null)
    await pass(66 * SECOND_MS)
    expect(service.said().at(-1)).toBe('off')
  })

  verifies('typing:cancel:reply', 'does not make a later one be forgotten', async () => {
    const service = fakeService()
    const hold = service.hold()
    const first = service.typing.start(ANN)
    await hold.reached
    const second = service.typing.start(ANN)
    service.failOnce(new UpstreamError('refused', 'no'))
    hold.open()
    await expect(first).rejects.toThrow('no')
    await second
    service.typing.stop(ANN)
    await pass(0)
    expect(service.said()).toEqual(['on', 'on', 'off'])
  })
})

test('renewals do not pile up behind a call that hangs, so the end is not late', async () => {
  const service = fakeService()
  const hold = service.hold()
  const starting = service.typing.start(ANN)
  await hold.reached
  await pass(40 * SECOND_MS)
  service.typing.stop(ANN)
  hold.open()
  await starting
  await pass(0)
  expect(service.said()).toEqual(['on', 'off'])
})

interface Call {
  userId: string
  on: boolean
  ticketAgeMs: number
}

/** A service that notes what it is told, and can be made to fail or to hang. */
function fakeService() {
  const calls: Call[] = []
  const tickets: { userId: string; contextToken: string | null; at: number }[] = []
  let failure: Error | null = null
  let once = false
  let held: Gate | null = null
  const upstream = {
    async typingTicket({ userId, contextToken }: Pick<TypingTarget, 'userId' | 'contextToken'>) {
      tickets.push({ userId, contextToken, at: Date.now() })
      return String(tickets.length - 1)
    },
    async typing({ userId, ticket, on }: { userId: string; ticket: string; on: boolean }) {
      calls.push({ userId, on, ticketAgeMs: Date.now() - (tickets[Number(ticket)]?.at ?? Number.NaN) })
      const gate = held
      held = null
      await gate?.pass()
      const error = failure
      if (once) failure = null
      if (error) throw error
    },
  }
  return {
    typing: openTyping({ upstream, now: Date.now, log: silentLog }),
    calls,
    tickets,
    said: () => calls.map(({ on }) => (on ? 'on' : 'off')),
    failWith(error: Error | null) {
      failure = error
      once = false
    },
    failOnce(error: Error) {
      failure = error
      once = true
    },
    /** The next call waits until the gate is opened. */
    hold(): Gate {
      const fresh = gate()
      held = fresh
      return fresh
    },
  }
}

/** Lets time go by, and what is due in it happen. */
async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms)
}
