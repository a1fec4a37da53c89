import { onTestFinished } from 'vitest'
import { silentLog } from '../../src/kit/log.ts'
import { type RunningSim, startSim } from '../../src/sim/main.ts'
import { type Answer, startTestHub, type TestHub, type TestHubOptions } from './test-hub.ts'

/** What every success of a relay endpoint holds. */
export const OK = { ret: 0, errcode: 0, errmsg: '' }

/** A call of a client endpoint; `path` is what stands behind the prefix. */
export function relayCall(hub: TestHub, token: string, path: string, body: unknown = {}): Promise<Answer> {
  return hub.call('POST', `/relay/bot/${path}`, { token, body })
}

/** A new client that is online, so that users are not told that it is away. */
export async function onlineClient(hub: TestHub, name: string): Promise<string> {
  const token = await hub.register(name)
  await relayCall(hub, token, 'msg/notifystart')
  return token
}

/** A hub with one client, to whom each of the users has said hello; and the context token of each. */
export async function hubWithContexts<User extends string>(users: readonly User[], options: TestHubOptions = {}) {
  const hub = await startTestHub(options)
  const token = await onlineClient(hub, 'bot')
  for (const user of users) await hub.say(user, 'hello')
  const { body } = await hub.poll(token)
  const context = (user: User): string => body.messages[users.indexOf(user)].context_token
  return { hub, token, context }
}

/** Whether the user sees the bot typing. */
export async function isTyping({ sim }: TestHub, user: string): Promise<boolean> {
  return (await sim.control.conversation({ user })).typing
}

/** A sim that outlives the hubs in front of it; gone when the test is over. */
export async function lastingSim(now: () => number = Date.now): Promise<RunningSim> {
  const botToken = 'sim@im.bot:token'
  const sim = await startSim({ host: '127.0.0.1', port: 0, botToken, holdMs: 5_000, log: silentLog, now })
  onTestFinished(() => sim.stop())
  return sim
}
