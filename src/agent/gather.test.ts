import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { callOf, FINISH } from './core-fixture.contract.ts'
import { gatherText } from './gather.ts'
import type { TurnEvent } from './provider/port.ts'

const LONG_MS = 60_000

verifies(
  'agent:events:gathered',
  'the first delta is told at once, later ones together, and nothing is lost or reordered',
  async () => {
    const told = await all(gatherText(from(words('a', 'b', 'c'), [callOf('1', 'read')], words('d'), [FINISH]), LONG_MS))
    expect(told).toEqual([...words('a', 'bc'), callOf('1', 'read'), ...words('d'), FINISH])
  },
)

test('with no window every delta is told by itself', async () => {
  expect(await all(gatherText(from(words('a', 'b', 'c'), [FINISH]), 0))).toEqual([...words('a', 'b', 'c'), FINISH])
})

test('text that waits is told when the window is over, though the model says nothing more', async () => {
  let goOn = () => {}
  const silence = new Promise<void>((resolve) => {
    goOn = resolve
  })
  async function* model(): AsyncGenerator<TurnEvent> {
    yield* words('a', 'b')
    await silence
    yield FINISH
  }
  const told = gatherText(model(), 5)
  expect((await told.next()).value).toEqual(words('a')[0])
  expect((await told.next()).value).toEqual(words('b')[0])
  goOn()
  expect((await told.next()).value).toEqual(FINISH)
})

test('text that waits at the end is told though there is no finish', async () => {
  expect(await all(gatherText(from(words('a', 'b', 'c')), LONG_MS))).toEqual(words('a', 'bc'))
})

test('a failure reaches the reader', async () => {
  async function* model(): AsyncGenerator<TurnEvent> {
    yield* words('a')
    throw new Error('gone')
  }
  const told = gatherText(model(), 0)
  expect((await told.next()).value).toEqual(words('a')[0])
  await expect(told.next()).rejects.toThrow('gone')
})

test('a failure while the reader is busy or after it left is no unhandled rejection', async () => {
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', note)
  try {
    for (const leave of [true, false]) {
      async function* model(): AsyncGenerator<TurnEvent> {
        yield* words('a')
        throw new Error('gone')
      }
      const told = gatherText(model(), LONG_MS)
      await told.next()
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
      if (leave) await told.return()
      else await expect(told.next()).rejects.toThrow('gone')
    }
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(unhandled).toEqual([])
  } finally {
    process.off('unhandledRejection', note)
  }
})

test('the model is let go when the reader leaves', async () => {
  let left = false
  async function* model(): AsyncGenerator<TurnEvent> {
    try {
      for (;;) yield* words('a')
    } finally {
      left = true
    }
  }
  for await (const _event of gatherText(model(), 0)) break
  expect(left).toBe(true)
})

function words(...deltas: string[]): TurnEvent[] {
  return deltas.map((delta) => ({ type: 'text', delta }))
}

async function* from(...parts: TurnEvent[][]): AsyncGenerator<TurnEvent> {
  for (const part of parts) yield* part
}

async function all(events: AsyncIterable<TurnEvent>): Promise<TurnEvent[]> {
  const told: TurnEvent[] = []
  for await (const event of events) told.push(event)
  return told
}
