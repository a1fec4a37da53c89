import { expect, test } from 'vitest'
import { decisionText } from './plan.ts'

test('an approval says to carry it out, with what the person said', () => {
  expect(decisionText('1. do', { decision: 'approve', feedback: null, plan: null })).toBe(
    'The plan was approved. Carry it out.',
  )
  expect(decisionText('1. do', { decision: 'approve', feedback: 'mind the gap', plan: '1. do' })).toBe(
    'The plan was approved. Carry it out.\n\nThe person said: mind the gap',
  )
})

test('an approval with edits holds the plan as the person changed it', () => {
  const text = decisionText('1. do', { decision: 'approve', feedback: null, plan: '1. do less' })
  expect(text).toContain('with changes')
  expect(text).toContain('1. do less')
})

test('blank edits and blank feedback are none', () => {
  expect(decisionText('1. do', { decision: 'approve', feedback: ' ', plan: ' ' })).toBe(
    'The plan was approved. Carry it out.',
  )
})

test('a rejection says why and that it must not be carried out', () => {
  const text = decisionText('1. do', { decision: 'reject', feedback: 'too risky', plan: 'ignored' })
  expect(text).toContain('rejected')
  expect(text).toContain('too risky')
  expect(text).toContain('Do not carry it out')
  expect(text).not.toContain('ignored')
})
