import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RunningSim } from '../../src/sim/main.ts'
import { PROBED, type Usage, usageOf } from '../probe.ts'
import { type Part, startPart, within } from '../processes.ts'
import { hubArgs, populate, type Server, tokenOf } from '../servers.ts'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
const ADDRESS = /http:\/\/127\.0\.0\.1:(\d+)\/health/
const START_MS = 120_000
let made = 0

export interface HubsPlan {
  sim: RunningSim
  folder: string
  /** One that is empty. */
  databaseUrl: string
  nodes: number
  clients: number
}

/** Starts hubs on one Postgres; client after client polls the next of them. */
export async function startHubs({ sim, folder, databaseUrl, nodes, clients }: HubsPlan): Promise<Server> {
  made += 1
  const bot = `nodes${made}`
  const env = { RELAY_UPSTREAM_TOKEN: tokenOf(sim, bot), RELAY_DATABASE_URL: databaseUrl }
  const started: { part: Part; port: number }[] = []
  for (let node = 0; node < nodes; node += 1)
    started.push(await startNode(sim, mkdtempSync(join(folder, 'node-')), env))
  const ports = started.map(({ port }) => port)
  const [port = 0] = ports
  const tokens = await populate(`http://127.0.0.1:${port}`, { sim, bot, clients })
  return {
    name: 'hub',
    bot,
    port,
    ports,
    tokens,
    // The one that leads holds the polls of all.
    untilParked: (count) =>
      within(START_MS, `${count} polls at the nodes`, async () => {
        while (Math.max(...(await Promise.all(ports.map(parked)))) < count)
          await new Promise((resolve) => setTimeout(resolve, 50))
      }),
    usage: async (options) => total(await Promise.all(started.map(({ part }) => usageOf(part, options)))),
    stop: async () => void (await Promise.all(started.map(({ part }) => part.stop()))),
  }
}

async function startNode(sim: RunningSim, dataDir: string, env: Record<string, string>) {
  const part = startPart('a hub', [...PROBED, CLI, ...hubArgs(sim, dataDir)], env)
  const port = Number((await part.printed(ADDRESS, START_MS))[1])
  await within(START_MS, 'a hub to be ready', async () => {
    while (!(await fetch(`http://127.0.0.1:${port}/ready`)).ok) await new Promise((resolve) => setTimeout(resolve, 50))
  })
  return { part, port }
}

async function parked(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return Number(/^switchboard_hub_parked_polls (\d+)/m.exec(text)?.[1] ?? 0)
}

/** All of them together; the event loop is that of the one that was latest. */
function total(all: readonly Usage[]): Usage {
  const sum = (of: (usage: Usage) => number) => all.reduce((so, usage) => so + of(usage), 0)
  return {
    cpuMs: sum(({ cpuMs }) => cpuMs),
    mainMs: sum(({ mainMs }) => mainMs),
    loopDelayMs: Math.max(...all.map(({ loopDelayMs }) => loopDelayMs)),
    heapBytes: sum(({ heapBytes }) => heapBytes),
    externalBytes: sum(({ externalBytes }) => externalBytes),
    rssBytes: sum(({ rssBytes }) => rssBytes),
  }
}
