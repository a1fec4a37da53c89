import { mkdir, readFile, realpath } from 'node:fs/promises'
import { AppError } from '../kit/errors.ts'
import { listen } from '../kit/http.ts'
import type { Log } from '../kit/log.ts'
import { createMetrics } from '../kit/metrics.ts'
import type { AgentServer } from './agent.ts'
import type { AgentSettings } from './config.ts'
import { createFigures, type Figures, observe } from './figures.ts'
import { eventStreams } from './http/events.ts'
import { agentHttp } from './http/server.ts'
import { todoWrite } from './own-tools.ts'
import { withClocks } from './provider/clocks.ts'
import { chooseModel, type Env, modelName, openProvider, parseModel } from './provider/models.ts'
import type { Provider } from './provider/port.ts'
import { type RetryOptions, withRetries } from './provider/retry.ts'
import { runSetup } from './run-setup.ts'
import { bell, sessionRunner } from './session-runner.ts'
import { statelessRuns } from './stateless.ts'
import { type Backing, openBacking } from './store/backing.ts'
import { builtinTools } from './tools/builtin.ts'
import { type Mcp, openMcp } from './tools/mcp.ts'
import { closeTools, toolRegistry } from './tools/registry.ts'
import { probeSandbox } from './workspace/bubblewrap.ts'
import { startProgram } from './workspace/program.ts'
import { resolveWorkspace } from './workspace/resolve-workspace.ts'
import { openWorkspace, type ShellPolicy } from './workspace/workspace.ts'

export { type AgentProbe, probeAgent, probeModel } from './probe.ts'

/** An agent server that listens. */
export interface RunningAgent {
  host: string
  port: number
  url: string
  /** Who answers. */
  model: string
  workspace: string
  /** Why there is no shell; null when there is one. */
  shellOff: string | null
  stop(): Promise<void>
}

/** What the server takes from where it runs. */
export interface AgentSurroundings {
  log: Log
  env: Env
  version: string
  now?: () => number
  /** How often an idle event stream hears a comment. */
  heartbeatMs?: number
  /** How patiently a model that fails is asked again. */
  retries?: RetryOptions
  /** Called once when another server has taken over the bucket that this one kept its sessions in: it is to be stopped. */
  onLost?: (reason: string) => void
}

const HEARTBEAT_MS = 15_000
/** Callers name models; what they name is not remembered without end. */
const MOST_MODELS = 100
const PLAN_LIFE_MS = 24 * 60 * 60_000
const SWEEP_EVERY_MS = 60_000
/** Renewals and looks for dead owners in the life of a claim that several nodes can take. */
const LOOKS_PER_LEASE = 3
const DEMO_DELTA_MS = 15
const STOP_WITHIN_MS = 5_000
const CLOSE_EVERY_MS = 20

/** Chooses the adapters, ends what a crash left, then listens. */
export async function startAgent(settings: AgentSettings, surroundings: AgentSurroundings): Promise<RunningAgent> {
  const backing = await openBacking(settings, {
    log: surroundings.log,
    bellOf: bell,
    onLost: surroundings.onLost ?? (() => {}),
  })
  try {
    return await startWith(backing, settings, surroundings)
  } catch (error) {
    await backing.close()
    throw error
  }
}

async function startWith(
  backing: Backing,
  settings: AgentSettings,
  { log, env, version, now = Date.now, heartbeatMs = HEARTBEAT_MS, retries }: AgentSurroundings,
): Promise<RunningAgent> {
  const { store, doorbell, leaseMs, ticketSecret } = backing
  const model = chooseModel(settings.model, env)
  const root = await openRoot(settings.workspace, log)
  const sandbox = await probeSandbox()
  const policy: ShellPolicy = {
    mode: settings.unsafeShell ? 'unsafe' : 'sandbox',
    allowNetwork: settings.allowNetwork,
    sandbox,
    limits: { processes: settings.shellProcesses, memoryMb: settings.shellMemoryMb, fileMb: settings.shellFileMb },
  }
  // What the server keeps is nothing for tools and commands, wherever it lies.
  const hidden = backing.dir === null ? [] : [await realpath(backing.dir)]
  const { shellOff } = await openWorkspace({ root, hidden, shell: policy })
  const mcp = await openMcpFile(settings.mcpConfig, env, log)
  const registry = toolRegistry(
    [...builtinTools({ shellOff, web: { allowNetwork: settings.allowNetwork } }), todoWrite, ...(mcp?.tools ?? [])],
    { log, now },
  )

  const metrics = createMetrics('switchboard_agent_')
  const figures = createFigures(metrics)
  const openModel = modelOpener(modelName(model), env, settings, { figures, ...(retries ? { retries } : {}) })
  await openModel(null)
  const setup = runSetup({
    registry,
    openModel,
    openWorkspace: (folder) => openWorkspace({ root: folder, hidden, shell: policy }),
    closeTools: closeTools,
    maxTokens: settings.maxTokens,
    maxCost: settings.maxCost,
    now,
  })
  const runner = sessionRunner({
    store,
    doorbell,
    setup,
    log,
    now,
    maxConcurrentRuns: settings.maxRuns,
    planLifeMs: PLAN_LIFE_MS,
    wallClockMs: settings.wallClockMs,
    maxSteps: settings.maxSteps,
    maxQueued: settings.maxQueue,
    ...(leaseMs === null ? {} : { leaseMs, renewEveryMs: leaseMs / LOOKS_PER_LEASE }),
    onFinished: ({ usage }, reason, tookMs) => figures.runEnded('session', reason, tookMs, usage),
  })
  const alone = statelessRuns({
    setup,
    root,
    log,
    now,
    maxRuns: settings.maxRuns,
    maxSteps: settings.maxSteps,
    wallClockMs: settings.wallClockMs,
    onFinished: (reason, tookMs, usage) => figures.runEnded('stateless', reason, tookMs, usage),
  })
  const streams = eventStreams({ store, doorbell, now, heartbeatMs })
  const agent: AgentServer = {
    store,
    runner,
    streams,
    alone,
    registry,
    now,
    workspaceFor: (asked) => resolveWorkspace(root, asked, hidden),
    async checkModel(name) {
      refuseScripts(name)
      await openModel(name)
    },
    modelOf: (session) => session.model ?? modelName(model),
    ring: (sessionId) => doorbell.ring(bell(sessionId)),
  }
  observe(metrics, agent)
  await runner.recover()

  let sweeping: Promise<void> | null = null
  const sweep = () => {
    sweeping ??= runner
      .sweep()
      .catch((error: unknown) => log.error('unfinished sessions could not be looked after', { error }))
      .finally(() => {
        sweeping = null
      })
    return sweeping
  }
  let draining = false
  const { authKeys, insecure, allowedHosts, allowedOrigins, requestsPerSecond } = settings
  const app = agentHttp(agent, {
    log,
    metrics,
    version,
    keys: authKeys,
    insecure,
    allowedHosts,
    allowedOrigins,
    requestsPerSecond,
    ticketSecret,
    onRefused: figures.refused,
    limited: backing.limited,
    whyNotReady: () => (draining ? 'The server is shutting down.' : backing.trouble()),
  })
  let answering = 0
  app.server.on('request', (_request, response) => {
    answering += 1
    response.once('close', () => {
      answering -= 1
    })
  })
  const looking = setInterval(() => void sweep(), leaseMs === null ? SWEEP_EVERY_MS : leaseMs / LOOKS_PER_LEASE).unref()
  const stop = async () => {
    draining = true
    clearInterval(looking)
    const force = setTimeout(() => app.server.closeAllConnections(), STOP_WITHIN_MS)
    await Promise.all([runner.stop(), alone.stop()])
    streams.close()
    // What keeps its connection after the last answer, or opened one and never asked, is not waited for.
    const closing = setInterval(() => {
      if (answering === 0) app.server.closeAllConnections()
    }, CLOSE_EVERY_MS)
    await app.close()
    clearInterval(closing)
    clearTimeout(force)
    await mcp?.close()
    await backing.close()
    metrics.stop()
  }
  try {
    const { host, port } = await listen(app, settings.addr)
    // Not before: a port that is taken must not cost a run that waits.
    await sweep()
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
    return { host, port, url, model: modelName(model), workspace: root, shellOff, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The real folder of all workspaces, made where it is not there. */
async function openRoot(folder: string, log: Log): Promise<string> {
  try {
    const made = await mkdir(folder, { recursive: true })
    const root = await realpath(folder)
    if (made !== undefined) log.info('the workspace was not there and has been made', { folder: root })
    return root
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
    const why = code === 'EEXIST' ? 'is a file' : code === 'ENOTDIR' ? 'lies below a file' : `cannot be made (${code})`
    throw new AppError('no_workspace', `The workspace ${folder} ${why}; name a folder with --workspace.`, { cause })
  }
}

/** Each model is opened once, with its clocks and retries around it. */
function modelOpener(
  fallback: string,
  env: Env,
  { firstByteMs, betweenChunksMs, wholeTurnMs, modelTries: tries }: AgentSettings,
  { figures, retries }: { figures: Figures; retries?: RetryOptions },
): (name: string | null) => Promise<Provider> {
  const patience: RetryOptions = { tries, ...retries, onRetry: ({ error }) => figures.modelRetried(error.kind) }
  const opened = new Map<string, Promise<Provider>>()
  return (name) => {
    const wanted = name ?? fallback
    const known = opened.get(wanted)
    if (known) return known
    const fresh = openProvider(parseModel(wanted), env, { demoDeltaMs: DEMO_DELTA_MS }).then((provider) =>
      withRetries(withClocks(provider, { firstByteMs, betweenChunksMs, wholeTurnMs }), patience),
    )
    if (opened.size >= MOST_MODELS) opened.clear()
    opened.set(wanted, fresh)
    fresh.catch(() => opened.delete(wanted))
    return fresh
  }
}

/** A caller may choose a model, not a file of the server. */
function refuseScripts(name: string): void {
  if (parseModel(name).provider !== 'scripted') return
  throw new AppError('unknown_model', 'scripted can be chosen only when the server is started.', {
    details: { field: 'model' },
  })
}

async function openMcpFile(path: string | null, env: Env, log: Log): Promise<Mcp | null> {
  if (path === null) return null
  let config: unknown
  try {
    config = JSON.parse(await readFile(path, 'utf8'))
  } catch (cause) {
    throw new AppError('bad_mcp_config', `The file ${path} of --mcp-config cannot be read as JSON.`, { cause })
  }
  const mcp = await openMcp(config, {
    log,
    startProgram,
    environment: { PATH: env.PATH ?? '/usr/bin:/bin', HOME: env.HOME ?? '/' },
  })
  for (const { name, tools, problem } of mcp.servers) {
    if (problem === null) log.info('MCP server is connected', { name, tools })
    else log.warn('MCP server did not start', { name, problem })
  }
  return mcp
}
