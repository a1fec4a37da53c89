import { httpServer, listen } from '../kit/http.ts'
import type { Log } from '../kit/log.ts'
import { createControl, type SimControl } from './control.ts'
import { errorAnswers } from './http/answers.ts'
import { addBotRoutes } from './http/bot-routes.ts'
import { addC2cRoutes } from './http/c2c-routes.ts'
import { addControlRoutes } from './http/control-routes.ts'
import { addPageRoutes } from './http/page-routes.ts'
import { createWorld } from './world.ts'

export interface SimConfig {
  host: string
  /** 0 for any that is free. */
  port: number
  /** The token of the default bot account. */
  botToken: string
  /** How long a poll waits for messages. */
  holdMs: number
  log: Log
  /** Unix milliseconds; the clock of the machine when absent. */
  now?: () => number
}

/** A sim that listens. */
export interface RunningSim {
  /** Where it is reached from this machine. */
  url: string
  host: string
  port: number
  botToken: string
  /** Answers what waits and closes; resolves within a second. */
  stop(): Promise<void>
  /** The actions of the control API, in process. */
  control: SimControl
}

const BODY_LIMIT_BYTES = 1024 * 1024
const CLOSE_WITHIN_MS = 500

/** Starts a stand-in for the messaging service. */
export async function startSim(config: SimConfig): Promise<RunningSim> {
  const { log, botToken, holdMs, now = Date.now } = config
  const world = createWorld({ now, log, holdMs, botToken })
  const control = createControl(world)
  const app = httpServer({ errorAnswer: errorAnswers(log), bodyLimitBytes: BODY_LIMIT_BYTES })
  addBotRoutes(app, world)
  addC2cRoutes(app, world)
  addControlRoutes(app, world, control)
  addPageRoutes(app, world, control)
  const { host, port } = await listen(app, config)
  world.url = `http://${reachable(host)}:${port}`
  log.info('sim listens', { url: world.url })
  return { url: world.url, host, port, botToken, stop, control }

  async function stop(): Promise<void> {
    world.parking.close()
    const timer = setTimeout(() => app.server.closeAllConnections(), CLOSE_WITHIN_MS)
    try {
      await app.close()
    } finally {
      clearTimeout(timer)
    }
    log.info('sim stopped')
  }
}

/** An address one can call, where the sim listens on all of them. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}
