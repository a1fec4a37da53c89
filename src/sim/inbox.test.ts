import { expect, test } from 'vitest'
import { createInbox } from './inbox.ts'

test('what is acknowledged is dropped, and an older or foreign cursor changes nothing', () => {
  const inbox = createInbox()
  inbox.append(['a', 'b', 'c'])
  const first = inbox.handOut(inbox.read().slice(0, 1))
  const third = inbox.handOut(inbox.read())
  inbox.acknowledge(third)
  inbox.append(['d'])
  for (const cursor of [first, createInbox().handOut([]), 'garbage', '', third]) {
    inbox.acknowledge(cursor)
    expect(inbox.read().map(({ text }) => text)).toEqual(['d'])
  }
  expect(inbox.position).toEqual({ last: 4, delivered: 3, acknowledged: 3 })
})

test('a cursor that was never handed out acknowledges nothing', () => {
  const inbox = createInbox()
  inbox.append(['a', 'b'])
  const [id] = Buffer.from(inbox.handOut([]), 'base64').toString().split('.')
  inbox.acknowledge(Buffer.from(`${id}.2`).toString('base64'))
  expect(inbox.read()).toHaveLength(2)
})

test('an answer holds at most 100 messages and 4 MiB, but always one', () => {
  const inbox = createInbox()
  inbox.append(Array.from({ length: 101 }, () => 'x'))
  expect(inbox.read()).toHaveLength(100)
  const large = createInbox()
  large.append(['y'.repeat(5 * 1024 * 1024), 'z'])
  expect(large.read()).toHaveLength(1)
})

test('a full inbox refuses, keeps what it has, and takes more once the bot has acknowledged', () => {
  const inbox = createInbox(10)
  inbox.append(['12345', '12345'])
  expect(() => inbox.append(['1'])).toThrow(/has not fetched 2 messages/)
  inbox.acknowledge(inbox.handOut(inbox.read()))
  inbox.append(['1'])
  expect(inbox.read().map(({ text }) => text)).toEqual(['1'])
})
