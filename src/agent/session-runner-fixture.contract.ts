import { Type } from 'typebox'
import { memoryDoorbell } from '../kit/doorbell.ts'
import { silentLog } from '../kit/log.ts'
import { newSession } from './core-fixture.contract.ts'
import type { FinishReason, Session, StoredEvent } from './model.ts'
import type { Provider } from './provider/port.ts'
import { runSetup } from './run-setup.ts'
import { bell, type RunOrder, type SessionRunner, type SessionRunnerOptions, sessionRunner } from './session-runner.ts'
import { memoryStore } from './store/memory.ts'
import type { AgentStore } from './store/port.ts'
import { defineTool, done } from './tools/define-tool.ts'
import type { Tool } from './tools/port.ts'
import { closeTools, toolRegistry } from './tools/registry.ts'
import { temporaryWorkspace } from './workspace/temporary.contract.ts'

/** A runner on a memory store, with a model, a tool that looks and one that writes. */
export interface RunnerBench {
  runner: SessionRunner
  store: AgentStore
  session: Session
  /** What the writing tool was asked to write. */
  written: string[]
  finished: FinishReason[]
  submit(goal: string, order?: Partial<RunOrder>): ReturnType<SessionRunner['submit']>
  events(): Promise<StoredEvent[]>
  /** The payloads of all events of a kind. */
  told(type: StoredEvent['type']): Promise<Record<string, unknown>[]>
  /** Resolves when there are so many events of a kind. */
  until(type: StoredEvent['type'], count?: number): Promise<void>
}

/** Opens one. */
export async function runnerBench(
  provider: Provider,
  {
    session: shape = {},
    options = {},
    store = memoryStore(),
    tools = [],
  }: {
    session?: Partial<Session>
    options?: Partial<SessionRunnerOptions>
    store?: AgentStore
    tools?: Tool[]
  } = {},
): Promise<RunnerBench> {
  const { workspace } = await temporaryWorkspace()
  const doorbell = options.doorbell ?? memoryDoorbell()
  const written: string[] = []
  const finished: FinishReason[] = []
  const Text = Type.Object({ text: Type.String() })
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    input: Type.Object({}),
    readOnly: true,
    run: async () => done('seen'),
  })
  const write = defineTool({
    name: 'write',
    description: 'Writes.',
    input: Text,
    readOnly: false,
    async run({ text }) {
      written.push(text)
      return done(`wrote ${text}`)
    },
  })
  const setup = runSetup({
    registry: toolRegistry([look, write, ...tools]),
    openModel: async () => provider,
    openWorkspace: async () => workspace,
    closeTools,
    maxTokens: null,
    maxCost: null,
    now: Date.now,
  })
  const runner = sessionRunner({
    store,
    doorbell,
    setup,
    log: silentLog,
    now: Date.now,
    maxConcurrentRuns: 10,
    planLifeMs: 60_000,
    wallClockMs: 60_000,
    maxSteps: 50,
    maxQueued: 16,
    onFinished: (_run, reason) => void finished.push(reason),
    ...options,
  })
  const session = (await store.sessions.get('s1')) ?? (await store.sessions.create(newSession('s1', shape), null))
  const events = () => store.log.read('s1', 0, 10_000)
  return {
    runner,
    store,
    session,
    written,
    finished,
    submit: (goal, order = {}) =>
      runner.submit(session, { goal, model: null, maxSteps: null, whenBusy: 'refuse', receipt: null, ...order }),
    events,
    told: async (type) =>
      (await events()).flatMap((event): Record<string, unknown>[] =>
        event.type === type ? [JSON.parse(event.data)] : [],
      ),
    async until(type, count = 1) {
      let woken = () => {}
      const stop = doorbell.listen(bell('s1'), () => woken())
      try {
        for (;;) {
          const rung = new Promise<void>((resolve) => {
            woken = resolve
          })
          if ((await events()).filter((event) => event.type === type).length >= count) return
          await rung
        }
      } finally {
        stop()
      }
    },
  }
}
