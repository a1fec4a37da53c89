/**
 * A session that is watched over a bad line. The connection breaks in the middle of the answer; the client comes back by
 * itself and goes on where it was: no event is missing, none comes twice. Then a second goal in the same session.
 */
import assert from 'node:assert/strict'
import { agentClient } from '../src/client/agent-client.ts'
import { startExampleAgent } from './support/example-agent.ts'

const words = ['Once ', 'upon ', 'a ', 'time ', 'there ', 'was ', 'a ', 'line ', 'that ', 'broke.']
const { url, stop } = await startExampleAgent({
  turns: [{ match: 'story', steps: words.flatMap((text) => [{ text }, { stall: 40 }]) }],
  after: 'You asked for a story before.',
})
try {
  let streams = 0
  const agent = agentClient({
    url,
    // A network that hangs up on the first stream in the middle of an event.
    async fetch(address, init) {
      const answer = await fetch(address, init)
      if (!address.includes('/events') || answer.body === null) return answer
      streams += 1
      if (streams > 1) return answer
      return new Response(answer.body.pipeThrough(breakIn('partial_message')), { headers: answer.headers })
    },
  })
  const { session_id: session } = await agent.createSession({ title: 'Stories' })

  const ids: number[] = []
  let text = ''
  for await (const event of agent.runAndFollow(session, 'tell me a story')) {
    ids.push(event.id)
    if (event.event === 'partial_message') text += event.data.text
    if (event.event === 'done') assert.equal(event.data.finish_reason, 'NoMoreToolCalls')
  }
  assert.equal(text, words.join(''))
  assert.equal(streams, 2, 'the line broke once')
  assert.deepEqual(
    ids,
    [...new Set(ids)].sort((a, b) => a - b),
    'each event once, in order',
  )

  for await (const event of agent.runAndFollow(session, 'what did I ask for?')) {
    if (event.event === 'message') assert.equal(event.data.content[0]?.text, 'You asked for a story before.')
  }
  const { turn_count: turns, transcript } = await agent.session(session)
  assert.deepEqual([turns, transcript.length], [2, 4])
  console.log(`${ids.length} events over two connections: ${text}`)
} finally {
  await stop()
}

/** Lets everything through up to the middle of an event with this name. */
function breakIn(name: string): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(piece, controller) {
      const place = Buffer.from(piece).indexOf(name)
      controller.enqueue(place < 0 ? piece : piece.subarray(0, place))
      if (place >= 0) controller.terminate()
    },
  })
}
