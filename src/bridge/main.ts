import { randomBytes } from 'node:crypto'
import { agentClient } from '../client/agent-client.ts'
import { cursorRelay } from '../client/cursor-relay.ts'
import { HubClientError } from '../client/hub-client.ts'
import type { Log } from '../kit/log.ts'
import { backoff, sleep } from '../kit/retry.ts'
import { openDataDirectory } from '../kit/sqlite/data-directory.ts'
import { type BridgeSettings, bridgeFolder } from './config.ts'
import { openConversations } from './conversations.ts'
import { takeMessages } from './inbox.ts'
import { type Journal, openJournal } from './journal.ts'
import { openOutgoing } from './outgoing.ts'
import { applyRecord, type BridgeRecord, emptyState, snapshotOf } from './state.ts'
import { findToken, type TokenOptions } from './token.ts'
import { typingSigns } from './typing.ts'

/** A bridge at work. */
export interface RunningBridge {
  name: string
  /** Where it remembers things. */
  folder: string
  /** Takes nothing more, and leaves what is under way to be gone on with. */
  stop(): Promise<void>
}

/** What a bridge takes from where it runs; the times are for tests. */
export interface BridgeSurroundings {
  log: Log
  now?: () => number
  tellAwayMs?: number
  planCheckMs?: number
  signal?: AbortSignal
  /** The hub is this bridge's own: a token that was rotated away is replaced. */
  reclaim?: boolean
}

const TELL_AWAY_MS = 15_000
const AGENT_PATIENCE_MS = 5_000
const GOODBYE_MS = 2_000
const JOURNAL = 'bridge.jsonl'

/** Reads what it remembers, finds its token, goes on with what was left, and takes messages. Waits for the hub. */
export async function startBridge(settings: BridgeSettings, surroundings: BridgeSurroundings): Promise<RunningBridge> {
  const { log, now = Date.now, tellAwayMs = TELL_AWAY_MS, planCheckMs, signal } = surroundings
  const folder = bridgeFolder(settings)
  const directory = await openDataDirectory(folder, { database: JOURNAL, service: 'bridge' })
  let journal: Journal<BridgeRecord> | undefined
  try {
    const state = emptyState(randomBytes(4).toString('hex'))
    const opened = await openJournal<BridgeRecord>({
      path: directory.databasePath,
      apply: (record) => applyRecord(state, record),
      snapshot: () => snapshotOf(state),
      log,
    })
    journal = opened
    const token = await patientToken({ ...settings, folder, reclaim: surroundings.reclaim }, log, signal)
    const relay = cursorRelay({ url: settings.hubUrl, token })
    // Online from here on: nobody is told that the agent is away when it is about to poll.
    await relay.notify('start', signal).catch(() => undefined)
    const agent = agentClient({
      url: settings.agentUrl,
      apiKey: settings.agentKey ?? undefined,
      patienceMs: AGENT_PATIENCE_MS,
    })
    const typing = typingSigns(relay)
    const contextOf = (user: string) => state.conversations.get(user)?.contextToken
    const outgoing = openOutgoing({ relay, contextOf, log })
    const append = (record: BridgeRecord) => opened.append(record)
    const conversations = openConversations({
      ...settings,
      state,
      append,
      agent,
      outgoing,
      typing,
      log,
      now,
      tellAwayMs,
      ...(planCheckMs === undefined ? {} : { planCheckMs }),
    })
    const stopping = new AbortController()
    conversations.resume()
    const { attend, pending } = conversations
    const taking = takeMessages({ relay, state, append, name: settings.name, attend, pending, log }, stopping.signal)
    log.info('bridge is taking messages', { name: settings.name, conversations: state.conversations.size })
    return {
      name: settings.name,
      folder,
      async stop() {
        stopping.abort()
        await taking
        await conversations.stop()
        typing.close()
        await relay.notify('stop', AbortSignal.timeout(GOODBYE_MS)).catch(() => undefined)
        await opened.close()
        directory.unlock()
      },
    }
  } catch (error) {
    await journal?.close()
    directory.unlock()
    throw error
  }
}

/** A hub that is not there yet is waited for; one that says no is told. */
async function patientToken(options: TokenOptions, log: Log, signal: AbortSignal | undefined): Promise<string> {
  const pause = backoff({ firstMs: 250, mostMs: 5_000 })
  for (;;) {
    try {
      return await findToken(options)
    } catch (error) {
      const mayPass = error instanceof HubClientError && (error.status === null || error.status >= 500)
      if (!mayPass || signal?.aborted) throw error
      if (pause.failures === 0) log.warn('no hub answers yet; the bridge waits for it', { hub: options.hubUrl })
      await sleep(pause.next(), signal)
      signal?.throwIfAborted()
    }
  }
}
