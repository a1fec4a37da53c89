import { expect, test } from 'vitest'
import { planWord } from './plan-word.ts'

test('words about a plan', () => {
  for (const text of ['approve', 'Approve.', 'yes', 'OK', 'go ahead', 'approve:', 'Approve ：', 'approve:  \n'])
    expect(planWord(text)).toEqual({ decision: 'approve' })
  for (const text of ['reject', 'No!']) expect(planWord(text)).toEqual({ decision: 'reject' })
  expect(planWord('approve: 1. this\n2. that')).toEqual({ decision: 'approve', plan: '1. this\n2. that' })
  expect(planWord('edit：只做第一步')).toEqual({ decision: 'approve', plan: '只做第一步' })
  expect(planWord('reject: too long')).toEqual({ decision: 'reject', feedback: 'too long' })
  expect(planWord('approve of cats?')).toEqual({ decision: 'reject', feedback: 'approve of cats?' })
})
