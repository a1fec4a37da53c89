import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { freePort, type Program, runCli, temporaryFolder, untilAnswers } from '../support/processes.ts'
import { verifies } from '../support/verifies.ts'

vi.setConfig({ testTimeout: 180_000 })

const USERS = ['ann', 'bob', 'cy', 'dee', 'eve', 'fay']
const KILLS = 4
const ANSWER = /You said: "([\s\S]*?)"\. I can really/

type Part = 'hub' | 'agent' | 'bridge'

/** Four programs, of which any can be killed and started again on the same data. */
async function startAll() {
  const folder = temporaryFolder()
  const ports = { sim: await freePort(), hub: await freePort(), agent: await freePort() }
  const url = (port: number) => `http://127.0.0.1:${port}`
  const workspace = join(folder, 'workspace')
  mkdirSync(workspace)
  const quiet = ['--log-level', 'error']
  const sim = runCli(['sim', '--addr', `127.0.0.1:${ports.sim}`, '--bot-token', 'bot@im.bot:t'])
  await untilAnswers(`${url(ports.sim)}/health`, sim)
  const upstream = ['--upstream-url', url(ports.sim), '--upstream-token', 'bot@im.bot:t']
  const addr = (port: number) => ['--addr', `127.0.0.1:${port}`]
  const commands: Record<Part, string[]> = {
    hub: ['hub', ...addr(ports.hub), '--data-dir', join(folder, 'hub'), ...upstream, ...quiet],
    agent: [
      'agent',
      ...addr(ports.agent),
      '--workspace',
      workspace,
      '--data-dir',
      join(folder, 'agent'),
      '--model',
      'demo',
      ...quiet,
    ],
    bridge: [
      'bridge',
      '--data-dir',
      join(folder, 'bridge'),
      '--hub-url',
      url(ports.hub),
      '--agent-url',
      url(ports.agent),
      ...quiet,
    ],
  }
  const programs = new Map<Part, Program>()
  const start = async (part: Part) => {
    const program = runCli(commands[part])
    programs.set(part, program)
    if (part === 'bridge') await vi.waitFor(() => expect(program.output()).toContain('in chat'), { timeout: 30_000 })
    else await untilAnswers(`${url(ports[part])}/health`, program, 30_000)
  }
  for (const part of ['hub', 'agent', 'bridge'] as const) await start(part)
  const kill = async (part: Part) => programs.get(part)?.kill('SIGKILL')
  return { simUrl: url(ports.sim), start, kill }
}

async function say(simUrl: string, user: string, text: string): Promise<void> {
  await fetch(`${simUrl}/sim/say`, { method: 'POST', body: JSON.stringify({ user, text }) })
}

/** What a user saw from the bot. */
async function seen(simUrl: string, user: string): Promise<string[]> {
  const response = await fetch(`${simUrl}/sim/conversation?user=${user}`)
  const body: { messages: { from: string; text: string }[] } = JSON.parse(await response.text())
  return body.messages.filter(({ from }) => from === 'bot').map(({ text }) => text)
}

interface Told {
  /** The words of the user that an answer speaks of. */
  words: string[]
  text: string
}

function answersIn(texts: string[]): Told[] {
  return texts.flatMap((text) => {
    const said = ANSWER.exec(text)?.[1]
    return said === undefined ? [] : [{ words: said.split(/\s+/).filter((word) => /^m\d+$/.test(word)), text }]
  })
}

/** Kills `part` again and again while users write, and gives everything each user saw, once all are answered. */
async function rounds(part: Part): Promise<Map<string, string[]>> {
  const { simUrl, start, kill } = await startAll()
  const said = new Map(USERS.map((user) => [user, new Set<string>()]))
  for (let round = 0; round < KILLS; round++) {
    for (const [index, user] of USERS.entries()) {
      const word = `m${round * 100 + index}`
      said.get(user)?.add(word)
      await say(simUrl, user, word)
    }
    // Anywhere from the first poll to the last answer of a round.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 600))
    await kill(part)
    await start(part)
  }
  const results = new Map<string, string[]>()
  await vi.waitFor(
    async () => {
      for (const user of USERS) {
        const texts = await seen(simUrl, user)
        results.set(user, texts)
        const answered = new Set(answersIn(texts).flatMap(({ words }) => words))
        expect([...(said.get(user) ?? [])].filter((word) => !answered.has(word))).toEqual([])
      }
    },
    { timeout: 60_000, interval: 200 },
  )
  return results
}

/** Words that were answered more than once. */
function twice(texts: string[]): string[] {
  const words = answersIn(texts).flatMap((told) => told.words)
  return [...new Set(words.filter((word, index) => words.indexOf(word) !== index))]
}

function inOrder(texts: string[]): boolean {
  const numbers = answersIn(texts).flatMap(({ words }) => words.map((word) => Number(word.slice(1))))
  return numbers.every((number, index) => index === 0 || number >= (numbers[index - 1] ?? 0))
}

verifies('bridge:crash:bridge', async () => {
  for (const [user, texts] of await rounds('bridge')) {
    expect(twice(texts), user).toEqual([])
    expect(inOrder(texts), user).toBe(true)
  }
})

verifies('bridge:crash:hub', async () => {
  for (const [user, texts] of await rounds('hub')) {
    const notices = texts.filter((text) => text.startsWith('(You may have this twice'))
    expect(twice(texts).length, user).toBeLessThanOrEqual(notices.length)
  }
})

verifies('bridge:crash:agent', async () => {
  for (const [user, texts] of await rounds('agent')) {
    expect(texts.filter((text) => text.endsWith('starts afresh.'))).toEqual([])
    const notices = texts.filter((text) => text.endsWith('starts again.'))
    expect(twice(texts).length, user).toBeLessThanOrEqual(notices.length)
  }
})
