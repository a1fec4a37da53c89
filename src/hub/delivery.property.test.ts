import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type TestDesk, testDesk } from '../../test/support/test-desk.ts'
import type { Batch } from './queue.ts'

/** What can happen to a client that speaks the spec's shape. */
type Event =
  | { type: 'put'; count: number }
  | { type: 'poll'; fate: 'read' | 'reset' | 'unfinished' }
  | { type: 'restart' }
  | { type: 'use' }

const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ type: fc.constant('put' as const), count: fc.integer({ min: 1, max: 4 }) }),
  fc.record({
    type: fc.constant('poll' as const),
    fate: fc.constantFrom('read' as const, 'reset' as const, 'unfinished' as const),
  }),
  fc.constant({ type: 'restart' as const }),
  fc.constant({ type: 'use' as const }),
)

interface World {
  desk: TestDesk
  put: string[]
  /** In the order in which the client really had them in hand. */
  read: string[]
  last: Batch | null
}

test('whatever happens, a client reads every message, in order, and none twice that it had read', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 25 }), async (events) => {
      const store = await testDesk({ holdMs: 1 })
      const world: World = { desk: store, put: [], read: [], last: null }
      for (const one of events) await happen(world, one)
      // At most seven deliveries each: what was lost that often is a dead letter, not a loss. What failed often comes alone.
      for (let round = 0; round < world.put.length + 10; round++) await happen(world, { type: 'poll', fate: 'read' })
      const dead = (await store.store.deadLetters.list({ limit: 1000 })).map(({ spec }) => JSON.parse(spec).content)
      expect(world.read).toEqual(world.put.filter((text) => !dead.includes(text)))
    }),
    { numRuns: 150 },
  )
}, 60_000)

async function happen(world: World, one: Event): Promise<void> {
  const { desk } = world
  switch (one.type) {
    case 'put': {
      const texts = Array.from({ length: one.count }, (_, index) => `m${world.put.length + index}`)
      world.put.push(...texts)
      return desk.put(...texts)
    }
    case 'restart':
      world.desk = await desk.reopen()
      world.last = null
      return
    case 'use': {
      const token = world.last?.messages.at(0)?.contextToken
      const owner = token === undefined ? null : await desk.store.deliveries.resolveContext(token)
      if (owner) desk.desk.used(owner)
      return
    }
    case 'poll': {
      const answer = await desk.poll(undefined, { unwritten: true })
      if (answer.type !== 'messages') return
      world.last = one.fate === 'read' ? answer.batch : null
      if (one.fate === 'read') world.read.push(...desk.texts(answer))
      if (one.fate !== 'unfinished') answer.batch.written()
      if (one.fate !== 'read') answer.batch.lost()
    }
  }
}
