import { Type } from 'typebox'
import { expect } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { memoryDoorbell } from '../kit/doorbell.ts'
import { callOf, FINISH, handMade } from './core-fixture.contract.ts'
import { bell } from './session-runner.ts'
import { runnerBench } from './session-runner-fixture.contract.ts'
import { defineTool, done } from './tools/define-tool.ts'

verifies('agent:events:written-first', async () => {
  const doorbell = memoryDoorbell()
  const bench = await runnerBench(
    handMade(() => [{ type: 'text', delta: 'Hi.' }, FINISH]),
    { options: { doorbell } },
  )
  const { append } = bench.store.log
  let writing = 0
  let rings = 0
  const ended = new Promise<void>((resolve) => {
    doorbell.listen(bell('s1'), () => {
      rings += 1
      expect(writing).toBe(0)
      void bench.events().then((events) => events.at(-1)?.type === 'done' && resolve())
    })
  })
  bench.store.log.append = async (...entry) => {
    writing += 1
    await new Promise((resolve) => setImmediate(resolve))
    const seq = await append(...entry)
    writing -= 1
    return seq
  }
  await bench.submit('go')
  await ended
  expect(rings).toBeGreaterThanOrEqual(3)
})

verifies('agent:loop:log-whole', async () => {
  const big = defineTool({
    name: 'big',
    description: 'Says much.',
    input: Type.Object({ turn: Type.Number() }),
    readOnly: true,
    run: async () => done('x'.repeat(8_000)),
  })
  const model = handMade((_request, turn) => (turn <= 6 ? [callOf(`c${turn}`, 'big', { turn }), FINISH] : [FINISH]), {
    contextWindow: 16_000,
  })
  const bench = await runnerBench(model, { tools: [big] })
  await bench.submit('go')
  await bench.until('done')
  const outputs = (messages: readonly { content: { type: string; content?: string }[] }[]) =>
    messages.flatMap(({ content }) => content.flatMap((block) => (block.type === 'tool_result' ? [block.content] : [])))
  expect(outputs(model.asked.at(-1)?.messages ?? []).some((text) => (text?.length ?? 0) < 8_000)).toBe(true)
  const kept = outputs(await bench.store.log.transcript('s1'))
  expect(kept.map((text) => text?.length)).toEqual(Array(6).fill(8_000))
})
