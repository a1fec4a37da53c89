/**
 * An AI client in twenty lines: it registers, waits for messages, shows that it is typing, and answers each one.
 * Starts a hub with its simulated messaging service, says something as a user, and checks the answer. Exits 0 when all is well.
 */
import assert from 'node:assert/strict'
import { hubAdmin, relayClient } from '../src/client/hub-client.ts'
import { startExampleHub } from './support/example-hub.ts'

const { url, simUrl, stop } = await startExampleHub()
try {
  const { token } = await hubAdmin({ url }).register('echo', { label: 'Says it back' })
  const hub = relayClient({ url, token })

  await fetch(`${simUrl}/sim/say`, { method: 'POST', body: JSON.stringify({ user: 'ann', text: 'hello' }) })
  for (const message of await hub.getUpdates()) {
    await hub.sendTyping(message.context_token)
    await hub.sendMessage(message.context_token, `You said: ${message.content}`)
  }

  const response = await fetch(`${simUrl}/sim/conversation?user=ann`)
  const conversation: { messages: { from: string; text: string }[] } = JSON.parse(await response.text())
  const answers = conversation.messages.filter(({ from }) => from === 'bot').map(({ text }) => text)
  assert.deepEqual(answers.slice(-1), ['You said: hello'])
  console.log('ann was answered:', answers.at(-1))
} finally {
  await stop()
}
