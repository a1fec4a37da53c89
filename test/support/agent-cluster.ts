import { setTimeout as pause } from 'node:timers/promises'
import type { Script } from '../../src/agent/provider/script-format.ts'
import { type AgentProcess, agentProcess, type RawEvent, type SharedPlaces } from './agent-process.ts'
import type { Program } from './processes.ts'

/** A node that can be killed, frozen and started again. */
export interface ClusterNode {
  agent: AgentProcess
  /** When it was last killed or frozen. */
  hurtAt: number
  kill(): Promise<void>
  freeze(): void
  thaw(): void
  start(): Promise<void>
}

/** Several nodes, and calls that go to any of them. */
export interface AgentCluster {
  nodes: ClusterNode[]
  /** A call to random nodes until one answers below 500; a call that is not safe to repeat brings its own key. */
  call(method: string, path: string, body?: object, headers?: Record<string, string>): Promise<CallAnswer>
  /** The events of a session after an id up to the next `done`, however often its stream is cut: each once, in order. */
  readRun(sessionId: string, afterSeq: number): Promise<RawEvent[]>
}

export interface CallAnswer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely by tests
  body: any
}

const ANSWER_WITHIN_MS = 4_000
/** A frozen node keeps its connections, and says nothing. */
const SILENT_FOR_MS = 4_000
const AGAIN_AFTER_MS = 50
const STARTS = 10

export async function agentCluster(count: number, script: Script, shared: SharedPlaces): Promise<AgentCluster> {
  const nodes = await Promise.all(Array.from({ length: count }, () => clusterNode(script, shared)))
  const anyNode = () => {
    const { agent } = nodes[Math.floor(Math.random() * nodes.length)] ?? { agent: null }
    if (agent === null) throw new Error('there are no nodes')
    return agent
  }
  return {
    nodes,
    async call(method, path, body, headers = {}) {
      for (;;) {
        const answer = await callOnce(anyNode().url + path, method, body, headers)
        if (answer !== null && answer.status < 500) return answer
        await pause(AGAIN_AFTER_MS)
      }
    },
    async readRun(sessionId, afterSeq) {
      const seen: RawEvent[] = []
      for (;;) {
        const after = seen.at(-1)?.id ?? afterSeq
        const silence = silenceWatch()
        for await (const event of anyNode().events(
          `/sessions/${sessionId}/events?extended=1&after=${after}`,
          silence.signal,
        )) {
          silence.heard()
          if (event.id > 0) seen.push(event)
          if (event.event !== 'done') continue
          silence.end()
          return seen
        }
        silence.end()
        await pause(AGAIN_AFTER_MS)
      }
    },
  }
}

async function clusterNode(script: Script, shared: SharedPlaces): Promise<ClusterNode> {
  const agent = await agentProcess(script, shared)
  let program: Program = await agent.start()
  const node: ClusterNode = {
    agent,
    hurtAt: 0,
    async kill() {
      node.hurtAt = Date.now()
      await program.kill('SIGKILL')
    },
    freeze() {
      node.hurtAt = Date.now()
      program.child.kill('SIGSTOP')
    },
    thaw: () => void program.child.kill('SIGCONT'),
    async start() {
      for (let tries = 1; ; tries++) {
        try {
          program = await agent.start()
          return
        } catch (error) {
          // What it needs went away while it started: it ends, and whoever looks after it starts it again.
          if (tries === STARTS) throw error
          await pause(AGAIN_AFTER_MS)
        }
      }
    },
  }
  return node
}

async function callOnce(
  url: string,
  method: string,
  body: object | undefined,
  headers: Record<string, string>,
): Promise<CallAnswer | null> {
  try {
    const response = await fetch(url, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  } catch {
    return null
  }
}

/** Aborts when nothing was heard for a while. */
function silenceWatch(): { signal: AbortSignal; heard(): void; end(): void } {
  const gone = new AbortController()
  const timer = setTimeout(() => gone.abort(), SILENT_FOR_MS)
  return {
    signal: gone.signal,
    heard: () => void timer.refresh(),
    end() {
      clearTimeout(timer)
      gone.abort()
    },
  }
}
