import { expect, vi } from 'vitest'
import { type Program, runCli } from './processes.ts'

/** Any free port for each part. */
export const ANY_PORTS = ['--hub-addr', '127.0.0.1:0', '--agent-addr', '127.0.0.1:0']

/** `switchboard up` as a process. */
export interface RunningUp {
  program: Program
  /** What stands behind a label in the banner. */
  line(label: string): string
  sim: string
  hub: string
  agent: string
}

/** Starts it and waits for its banner. */
export async function startUp(
  args: string[],
  cwd: string,
  env: Record<string, string> = {},
  cli?: string,
): Promise<RunningUp> {
  const program = runCli(['up', ...args], { cwd, env, ...(cli ? { cli } : {}) })
  await vi.waitFor(
    () => {
      if (program.child.exitCode !== null) throw new Error(`it ended: ${program.output()}`)
      expect(program.output()).toContain('Ctrl-C stops all of it.')
    },
    { timeout: 60_000 },
  )
  const line = (label: string) => new RegExp(`^ +${label} +(.*)$`, 'm').exec(program.output())?.[1] ?? ''
  return {
    program,
    line,
    sim: line('chat').replace(/\/ .*/, ''),
    hub: line('panel').replace('/hub/ui', ''),
    agent: line('console').replace('/ui', ''),
  }
}

/** A call and its JSON. */
// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely by tests
export async function ask(url: string, body?: object): Promise<any> {
  const response = await fetch(url, body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) })
  return JSON.parse(await response.text())
}

/** What the bot answers to a user's next words. */
export async function answerTo(sim: string, user: string, text: string): Promise<string> {
  const before = (await ask(`${sim}/sim/conversation?user=${user}`)).messages?.length ?? 0
  await ask(`${sim}/sim/say`, { user, text })
  return vi.waitFor(
    async () => {
      const { messages } = await ask(`${sim}/sim/conversation?user=${user}`)
      const answer = messages.slice(before + 1).find(({ from }: { from: string }) => from === 'bot')
      expect(answer).toBeDefined()
      return answer.text
    },
    { timeout: 30_000, interval: 20 },
  )
}
