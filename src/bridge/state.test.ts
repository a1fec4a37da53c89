import { expect } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { applyRecord, type BridgeRecord, conversationName, emptyState, snapshotOf } from './state.ts'

const OLD: BridgeRecord[] = [
  { t: 'bridge', version: 1, id: 'b', cursor: 'c', n: 1 },
  { t: 'took', cursor: 'c', messages: [{ n: 1, id: '1', user: 'ann', contextToken: 'x', text: 'hi', beside: '' }] },
  { t: 'session', user: 'ann', session: 's1', generation: 0 },
]

verifies(
  'bridge:session:per-account',
  'a conversation of before goes on with the first account that is written to',
  () => {
    const state = emptyState('b')
    for (const record of OLD) applyRecord(state, record)
    const write = (n: number, account: string | null) => {
      const user = conversationName(state, { user: 'ann', account }, new Map())
      const message = { n, id: `${n}`, user, ...(account === null ? {} : { account }), contextToken: 'x', text: 'hi' }
      applyRecord(state, { t: 'took', cursor: 'c', messages: [{ ...message, beside: '' }] })
      return state.conversations.get(user)?.session
    }
    expect(write(2, null)).toBe('s1')
    expect([write(3, 'shop'), write(4, 'main'), write(5, 'shop'), write(6, null)]).toEqual(['s1', null, 's1', 's1'])
    // And after the journal was written anew.
    const again = emptyState('b')
    for (const record of snapshotOf(state)) applyRecord(again, record)
    const names = ['shop', 'main'].map((account) => conversationName(again, { user: 'ann', account }, new Map()))
    expect(names.map((name) => again.conversations.get(name)?.session)).toEqual(['s1', null])
  },
)

verifies('bridge:session:per-account', 'two accounts in one batch are told apart', () => {
  const claimed = new Map<string, string>()
  const name = (account: string) => conversationName(emptyState('b'), { user: 'ann', account }, claimed)
  expect([name('main'), name('shop'), name('main')]).toEqual(['ann', 'ann (shop)', 'ann'])
})
