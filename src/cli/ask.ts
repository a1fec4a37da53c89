import { type AgentClient, AgentClientError, agentClient } from '../client/agent-client.ts'
import { type HubAdmin, hubAdmin } from '../client/hub-client.ts'
import { AppError } from '../kit/errors.ts'
import { readHttpUrl, readSecret, type Setting } from '../kit/settings.ts'
import { withProgress } from './progress.ts'

/** Every command that tells something can tell it to a program. */
export const JSON_FLAG = {
  json: { flag: '--json', help: 'print JSON', fallback: false, read: () => true },
}

/** Settings of every command that asks a hub. */
export const ASK_HUB = {
  hub: {
    flag: '--hub',
    placeholder: '<url>',
    env: 'RELAY_URL',
    help: 'the hub to ask',
    fallback: 'http://127.0.0.1:8765',
    read: readHttpUrl,
  },
  ...JSON_FLAG,
  adminToken: {
    env: 'RELAY_ADMIN_TOKEN',
    help: "the hub's admin token, where it has one",
    fallback: null,
    read: readSecret,
  } satisfies Setting<string | null>,
}

/** Settings of every command that asks an agent server. */
export const ASK_AGENT = {
  agent: {
    flag: '--agent',
    placeholder: '<url>',
    env: 'AGENT_URL',
    help: 'the agent server to ask',
    fallback: 'http://127.0.0.1:3000',
    read: readHttpUrl,
  },
  agentKey: {
    env: 'AGENT_KEY',
    help: 'a key of the agent server, where it wants one',
    fallback: null,
    read: readSecret,
  } satisfies Setting<string | null>,
}

/** Asks the hub that the settings name; a person sees that it goes on when it takes long. */
export function askHub<T>(
  { hub, adminToken }: { hub: string; adminToken: string | null },
  question: (admin: HubAdmin) => Promise<T>,
): Promise<T> {
  return withProgress(`asking the hub at ${hub}`, question(hubAdmin({ url: hub, adminToken: adminToken ?? undefined })))
}

/** A client of the agent server that the settings name. */
export function agentOf({ agent, agentKey }: { agent: string; agentKey: string | null }): AgentClient {
  return agentClient({ url: agent, apiKey: agentKey ?? undefined })
}

/** Tells of a key that the agent server misses, or does not take, by the name it has here. */
export function namingKey(agentKey: string | null): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof AgentClientError) || error.status !== 401) throw error
    const text =
      agentKey === null
        ? 'The agent server wants a key; set AGENT_KEY in the environment to one of its keys.'
        : 'The agent server does not accept the key in AGENT_KEY; set it to one of its keys.'
    throw new AppError(error.code, text, { cause: error })
  }
}
