import pc from 'picocolors'
import { AGENT_SETTINGS, type AgentSettings, parseAgentConfig } from '../agent/config.ts'
import { AppError } from '../kit/errors.ts'
import { jsonLog } from '../kit/log.ts'
import type { CommandSpec, Flags } from './command.ts'
import { banner, fail, reachable, stopOnSignal } from './terminal.ts'
import { VERSION } from './version.ts'

/** `switchboard agent` */
export const agentCommand: CommandSpec = {
  name: 'agent',
  description: 'run the agent session server',
  group: 'Run:',
  settings: AGENT_SETTINGS,
  examples: [
    ['switchboard agent --workspace ./work', 'with an offline demo model'],
    ['ANTHROPIC_API_KEY=… switchboard agent', 'with a real model, in this folder'],
    ['AGENT_AUTH_KEYS=… switchboard agent --addr 0.0.0.0:3000', 'to be called from elsewhere'],
  ],
  async run({ flags, complain }) {
    const { settings, problems } = parseAgentConfig(flags, process.env)
    const { startAgent } = await import('../agent/main.ts')
    complain([...problems, ...(await modelProblems(settings.model, flags))])
    const log = jsonLog(settings.logLevel)
    let end = (_reason: string) => {}
    const lost = new Promise<string>((resolve) => {
      end = resolve
    })
    const agent = await startAgent(settings, { log, env: process.env, version: VERSION, onLost: end })
    const { at, listens } = reachable(agent)
    banner('agent', [
      ['api', at],
      ['openapi', `${at}/openapi.json`],
      ...listens,
      ['model', modelText(agent.model)],
      ['workspace', agent.workspace],
      ['data', dataText(settings)],
      ['shell', agent.shellOff ?? 'in a sandbox'],
      ['access', accessText(settings)],
    ])
    const key = settings.authKeys === null ? '' : ` -H 'X-API-Key: <key>'`
    console.log(pc.dim(`  Try it:  curl -X POST ${at}/run${key} -d '{"goal":"list files"}'\n`))
    stopOnSignal(() => agent.stop())
    void lost.then(async (reason) => {
      log.error(reason, {})
      await agent.stop().catch(() => undefined)
      fail(new AppError('bucket_lost', reason))
    })
  },
}

/** What is wrong with the model that was asked for, or with the keys that choose one. */
export async function modelProblems(model: string | null, flags: Flags): Promise<string[]> {
  const { probeModel } = await import('../agent/main.ts')
  const { modelProblem } = await probeModel(model, process.env)
  if (modelProblem === null) return []
  const source = flags.model !== undefined ? '--model' : model ? 'AGENT_MODEL' : "the environment's model"
  return [`${source} cannot be used: ${modelProblem}`]
}

/** A model's name, explained where it is the demo. */
export function modelText(model: string): string {
  return model === 'demo' ? 'demo (an offline model of a few rules; set a key or --model for a real one)' : model
}

/** Without what the address of Redis may hold beside its place. */
function dataText({ dataDir, redisUrl, s3Url }: AgentSettings): string {
  const older = s3Url === null ? '' : `, older sessions in the bucket ${s3Url.bucket}`
  if (redisUrl !== null) return `in Redis at ${new URL(redisUrl).host}${older}`
  if (s3Url !== null) return `in the bucket ${s3Url.bucket}, by this server alone`
  return dataDir ?? 'in memory: gone when it stops (set --data-dir to keep it)'
}

function accessText({ authKeys, insecure }: AgentSettings): string {
  if (authKeys !== null) return `needs one of ${authKeys.length} key(s) in X-API-Key`
  if (insecure) return pc.yellow('OPEN TO EVERY CALLER (--insecure)')
  return 'open to this machine only; set --auth-keys to reach it from elsewhere'
}
