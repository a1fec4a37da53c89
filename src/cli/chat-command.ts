import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentClient, NewSession } from '../client/agent-client.ts'
import { AppError } from '../kit/errors.ts'
import { readSwitch, type Setting } from '../kit/settings.ts'
import { ASK_AGENT, agentOf, namingKey } from './ask.ts'
import { type ChatInput, openChatInput } from './chat-input.ts'
import { chatScreen } from './chat-screen.ts'
import { chat } from './chat-session.ts'
import type { CommandSpec } from './command.ts'
import { withProgress } from './progress.ts'

const text = (flag: string, placeholder: string, help: string) =>
  ({ flag, placeholder, help, fallback: null, read: (given: string) => given }) satisfies Setting<string | null>

const CHAT = {
  ...ASK_AGENT,
  session: text('--session', '<id>', 'go on with this session'),
  last: { flag: '--last', help: 'go on with the newest session', fallback: false, read: readSwitch },
  model: text('--model', '<provider:model>', "who answers; the agent server's own model when nothing is said"),
  workspace: text('--workspace', '<folder>', "where the session works, inside the server's own folder"),
  systemPrompt: text('--system-prompt', '<text>', 'what the agent is told about its place'),
  planMode: {
    flag: '--plan-mode',
    help: 'nothing is changed before a plan is approved',
    fallback: false,
    read: readSwitch,
  },
  json: { flag: '--json', help: 'print the events as lines of JSON', fallback: false, read: () => true },
}

/** `switchboard chat` */
export const chatCommand: CommandSpec = {
  name: 'chat',
  description: 'talk with an agent in the terminal',
  group: 'Talk:',
  words: [{ name: '[goal...]', help: 'what to do; without it you are asked, or lines are read from a pipe' }],
  settings: CHAT,
  examples: [
    ['switchboard chat', 'Ctrl-C stops a run, Ctrl-D leaves'],
    ['switchboard chat --last', 'go on where you were'],
    ['switchboard chat "list files"', 'one goal, then the end'],
    ['echo "list files" | switchboard chat --json', 'for a script; ends with 1 when a run failed'],
  ],
  async run({ words, read }) {
    const values = read(CHAT)
    const agent = agentOf(values)
    const newSession = async () => {
      const { model, workspace, systemPrompt, planMode } = values
      const session: NewSession = {
        ...(model === null ? {} : { model }),
        ...(workspace === null ? {} : { workspace }),
        ...(systemPrompt === null ? {} : { system_prompt: systemPrompt }),
        ...(planMode ? { plan_mode: true } : {}),
      }
      return (await agent.createSession(session)).session_id
    }
    const start = values.last ? newest(agent) : values.session === null ? newSession() : Promise.resolve(values.session)
    const nameKey = namingKey(values.agentKey)
    const sessionId = await withProgress(`asking the agent at ${values.agent}`, start).catch(nameKey)
    const screen = chatScreen({ write: (out) => void process.stdout.write(out), json: values.json })
    const input = words.length > 0 ? goalAlone(words.join(' ')) : openChatInput()
    if (input.interactive) screen.note(`Session ${sessionId}. /help tells what can be said; Ctrl-D leaves.`)
    const talk = { agent, input, screen, sessionId, newSession, model: values.model, edit: editor() }
    const allWell = await chat(talk).catch(nameKey)
    input.close()
    if (input.interactive) screen.note(`Go on with:  switchboard chat --session ${sessionId}`)
    process.exitCode = allWell ? 0 : 1
  },
}

async function newest(agent: AgentClient): Promise<string> {
  const { sessions } = await agent.listSessions({ limit: 1 })
  const [session] = sessions
  if (session === undefined)
    throw new AppError('no_session', 'There is no session yet; start one with "switchboard chat".')
  return session.session_id
}

/** One goal of the command line; a plan that it leads to is decided by what comes on standard input. */
function goalAlone(goal: string): ChatInput {
  let input: ChatInput | null = null
  let given: string | null = goal
  let listener = () => {}
  const interrupted = () => listener()
  process.on('SIGINT', interrupted)
  return {
    interactive: false,
    async next(prompt) {
      const first = given
      given = null
      if (first !== null) return first
      if (prompt === '> ') return null
      if (input === null) {
        process.off('SIGINT', interrupted)
        input = openChatInput()
        input.onInterrupt(listener)
      }
      return input.next(prompt)
    },
    onInterrupt(given) {
      listener = given
    },
    close: () => input?.close(),
  }
}

/** Opens a text in the person's editor. */
function editor(): ((plan: string) => string) | null {
  const program = process.env.VISUAL ?? process.env.EDITOR
  if (program === undefined || program === '' || process.stdin.isTTY !== true) return null
  return (plan) => {
    const folder = mkdtempSync(join(tmpdir(), 'switchboard-plan-'))
    const path = join(folder, 'plan.md')
    try {
      writeFileSync(path, plan)
      spawnSync(program, [path], { stdio: 'inherit', shell: true })
      return readFileSync(path, 'utf8')
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
