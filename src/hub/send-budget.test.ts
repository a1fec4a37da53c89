import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { openSendBudget } from './send-budget.ts'

const LIMITS = { sendsPerContext: 10, replyWindowMs: 1_000, accountSends: 3, accountWindowMs: 100 }

verifies('wire:budget:account-window', 'a window slides: what left it makes room, and each account has its own', () => {
  let at = 0
  const budget = openSendBudget(LIMITS, () => at)
  for (at = 10; at <= 30; at += 10) budget.note('a')
  at = 40
  expect(budget.waitMs('a', 1)).toBe(70)
  expect(budget.waitMs('a', 2)).toBe(80)
  expect(budget.waitMs('a', 99)).toBe(90)
  expect(budget.waitMs('b', 3)).toBe(0)
  expect([...budget.used()]).toEqual([['a', 3]])
  at = 110
  expect(budget.waitMs('a', 1)).toBe(0)
  expect([...budget.used()]).toEqual([['a', 2]])
})

test('without a limit nothing waits, and all is counted', () => {
  const budget = openSendBudget({ ...LIMITS, accountSends: 0 }, () => 5)
  for (let count = 0; count < 50; count += 1) budget.note('a')
  expect(budget.waitMs('a', 50)).toBe(0)
  expect(budget.used().get('a')).toBe(50)
})

verifies('wire:budget:remaining', 'what is left follows from the last message of the user and the sends since', () => {
  const heard = {
    account: 'a',
    userId: 'u',
    upstreamToken: 't',
    upstreamTokenAt: 5,
    lastInboundAt: 5,
    chosenClientId: null,
  }
  const { remaining } = openSendBudget(LIMITS, () => 0)
  expect(remaining({ ...heard, sendsUsed: 4 })).toEqual({ windowClosesAt: 1_005, sendsLeft: 6 })
  expect(remaining({ ...heard, sendsUsed: 40, lastInboundAt: null })).toEqual({ windowClosesAt: null, sendsLeft: 0 })
  const open = openSendBudget({ ...LIMITS, sendsPerContext: 0, replyWindowMs: 0 }, () => 0)
  expect(open.remaining({ ...heard, sendsUsed: 4 })).toEqual({ windowClosesAt: null, sendsLeft: null })
})
