/**
 * One bot account, two agents: a user lists them, chooses one, addresses the other by name, and quotes an answer to
 * reach who wrote it. The hub says why each message went where it went.
 */
import assert from 'node:assert/strict'
import { hubAdmin, relayClient } from '../src/client/hub-client.ts'
import { startExampleHub } from './support/example-hub.ts'

const { url, simUrl, stop } = await startExampleHub()
try {
  const admin = hubAdmin({ url })
  const claude = relayClient({ url, token: (await admin.register('claude')).token })
  const codex = relayClient({ url, token: (await admin.register('codex')).token })

  await say('/use codex')
  await say('fix the build')
  await say('@claude review it')

  const [forCodex] = await codex.getUpdates()
  const [forClaude] = await claude.getUpdates()
  assert.equal(forCodex?.content, 'fix the build')
  assert.equal(forClaude?.content, '@claude review it')

  const response = await fetch(`${url}/hub/messages`)
  const { messages }: { messages: { content: string; reason: string }[] } = JSON.parse(await response.text())
  const reasons = messages.reverse().map(({ content, reason }) => `${content} -> ${reason}`)
  assert.deepEqual(reasons, ['/use codex -> command:use', 'fix the build -> chosen', '@claude review it -> mention'])
  for (const line of reasons) console.log(line)
} finally {
  await stop()
}

async function say(text: string): Promise<void> {
  const before = await known()
  await fetch(`${simUrl}/sim/say`, { method: 'POST', body: JSON.stringify({ user: 'ann', text }) })
  while ((await known()) === before) await new Promise((resolve) => setTimeout(resolve, 10))
}

async function known(): Promise<number> {
  const { messages }: { messages: unknown[] } = JSON.parse(await (await fetch(`${url}/hub/messages`)).text())
  return messages.length
}
