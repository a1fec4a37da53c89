import pc from 'picocolors'
import type { AgentProbe } from '../agent/main.ts'
import { JSON_FLAG } from './ask.ts'
import type { CommandSpec } from './command.ts'
import { checkDataDirectory, checkNode, checkPort, checkUpstream, type Finding } from './doctor-checks.ts'
import { withProgress } from './progress.ts'
import { parseUpConfig, UP_SETTINGS, type UpConfig } from './up-settings.ts'

const DOCTOR = { ...UP_SETTINGS, ...JSON_FLAG }

/** `switchboard doctor` */
export const doctorCommand: CommandSpec = {
  name: 'doctor',
  description: 'check whether "switchboard up" would work here, and say what to do about what would not',
  group: 'Look after a hub:',
  settings: DOCTOR,
  examples: [['switchboard doctor', 'ends with 1 when something would not work']],
  async run({ flags, complain }) {
    const { config, problems } = parseUpConfig(flags, process.env)
    complain(problems)
    const findings = await withProgress('looking around', examine(config))
    const healthy = findings.every(({ state }) => state !== 'problem')
    if (!healthy) process.exitCode = 1
    if (flags.json !== undefined) return console.log(JSON.stringify({ healthy, findings }))
    for (const { check, state, says, advice } of findings) {
      console.log(`${MARKS[state]} ${check.padEnd(15)} ${says}`)
      if (advice !== null) console.log(`  ${' '.repeat(15)} ${pc.dim(advice)}`)
    }
    console.log(healthy ? pc.green('\n"switchboard up" will work here.') : pc.red('\nSome things need your attention.'))
  },
}

const MARKS = { ok: pc.green('✓'), note: pc.yellow('!'), problem: pc.red('✗') } as const

async function examine({ hub, agent, dataDir }: UpConfig): Promise<Finding[]> {
  const { probeAgent } = await import('../agent/main.ts')
  const simAddr = hub.simAddr ?? { host: '127.0.0.1', port: 0 }
  const [probe, ...found] = await Promise.all([
    probeAgent(agent.model, process.env),
    checkPort('hub port', hub.addr, '--hub-addr'),
    checkPort('agent port', agent.addr, '--agent-addr'),
    checkPort('sim port', simAddr, '--sim-addr'),
    checkDataDirectory(dataDir),
    checkUpstream(hub.upstreamUrl),
  ])
  return [checkNode(process.versions.node), ...found, modelFinding(probe), sandboxFinding(probe, agent.unsafeShell)]
}

function modelFinding({ model, modelProblem }: AgentProbe): Finding {
  const check = 'model'
  if (modelProblem !== null) {
    return { check, state: 'problem', says: modelProblem, advice: 'Correct --model, or set the key it needs.' }
  }
  if (model !== 'demo') return { check, state: 'ok', says: `${model} answers`, advice: null }
  return {
    check,
    state: 'note',
    says: 'no key is set, so an offline demo model answers',
    advice: 'Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or name a model with --model.',
  }
}

function sandboxFinding({ sandboxProblem }: AgentProbe, unsafeShell: boolean): Finding {
  const check = 'bubblewrap'
  if (sandboxProblem === null) return { check, state: 'ok', says: 'commands of the agent are shut in', advice: null }
  const off = unsafeShell ? 'commands run without a sandbox (--unsafe-shell)' : 'the agent cannot run commands'
  return {
    check,
    state: 'note',
    says: `${off}: ${sandboxProblem}`,
    advice: 'Install bubblewrap (Debian: apt-get install bubblewrap).',
  }
}
