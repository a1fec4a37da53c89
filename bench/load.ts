// The load generator: many clients of a relay in a process of their own, told over the channel what to do.
import { checker } from '../src/kit/schema.ts'
import { sharedMicroseconds } from './clock.ts'
import { type Connection, openConnection } from './connection.ts'
import { LoadCall, NUMBERED_TEXT, type Received } from './load-calls.ts'

interface Client {
  port: number
  token: string
  polling: Connection
  /** Of the newest message. */
  contextToken: string
}

const REPLY = 'A reply of a sentence or two, as an agent might give it, long enough to look like one of the real ones.'
const checkCall = checker(LoadCall)
let clients: Client[] = []
let current = newRun(-1, 0)
/** Why nothing more can be measured. */
let problem: string | undefined

process.on('message', (message) => {
  act(checkCall(message)).then((answer) => process.send?.({ ok: true, answer }), giveUp)
})
process.on('disconnect', () => process.exit(0))

async function act(call: LoadCall): Promise<unknown> {
  if (problem !== undefined) throw new Error(problem)
  switch (call.do) {
    case 'poll':
      clients = call.tokens.map((token, index) =>
        openClient(call.ports?.[index % call.ports.length] ?? call.port, token, call.echo),
      )
      await Promise.all(clients.map(({ polling }) => polling.opened))
      return
    case 'expect':
      // So that what is measured is not a pause of this process, which has thousands of sockets to look at.
      globalThis.gc?.()
      current = newRun(call.run, call.count)
      return
    case 'await':
      await current.complete
      return current.received
    case 'send':
      return sendAll(call.perClient)
    case 'tellCpu': {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1000
    }
    case 'hangUp':
      for (const { polling } of clients) polling.close()
      clients = []
  }
}

function openClient(port: number, token: string, echo: boolean): Client {
  const polling = openConnection({ port, token, onBroken: giveUp, onAnswer })
  const client: Client = { port, token, polling, contextToken: '' }
  poll('{}')
  return client

  function onAnswer(status: number, body: string): void {
    if (status !== 200) {
      giveUp(new Error(`a poll was answered with ${status}: ${body.slice(0, 200)}`))
      return
    }
    note(body)
    client.contextToken = lastString(body, '"context_token":"') || client.contextToken
    poll(echo ? `{"get_updates_buf":"${lastString(body, '"get_updates_buf":"')}"}` : '{}')
  }

  function poll(body: string): void {
    polling.post('/ilink/bot/getupdates', body)
  }
}

function newRun(run: number, count: number) {
  let complete = () => {}
  const whenComplete = new Promise<void>((resolve) => {
    complete = resolve
  })
  const received: Received = { distinct: 0, repeated: 0, answers: 0, doneAt: 0, waitsMs: [] }
  return { run, count, seen: new Uint8Array(count), received, finish: complete, complete: whenComplete }
}

function note(body: string): void {
  const { run, count, seen, received, finish } = current
  const now = sharedMicroseconds()
  const before = received.distinct
  for (const [, ofRun, index, saidAt] of body.matchAll(NUMBERED_TEXT)) {
    if (Number(ofRun) !== run) continue
    if (seen[Number(index)] === 1) {
      received.repeated += 1
      continue
    }
    seen[Number(index)] = 1
    received.distinct += 1
    received.waitsMs.push((now - Number(saidAt)) / 1000)
  }
  if (received.distinct === before) return
  received.answers += 1
  received.doneAt = now
  if (received.distinct === count) finish()
}

async function sendAll(perClient: number): Promise<{ count: number; failed: number; tookMs: number }> {
  const senders = clients.map((client) => sender(client, perClient))
  await Promise.all(senders.map(({ opened }) => opened))
  const startedAt = sharedMicroseconds()
  const failures = await Promise.all(senders.map(({ send }) => send()))
  const tookMs = (sharedMicroseconds() - startedAt) / 1000
  for (const { close } of senders) close()
  return { count: senders.length * perClient, failed: failures.reduce((sum, one) => sum + one, 0), tookMs }
}

/** Sends `count` messages on a connection of its own, each when the one before has been answered. */
function sender({ port, token, contextToken }: Client, count: number) {
  let left = count
  let failed = 0
  let finish = (_failed: number) => {}
  const finished = new Promise<number>((resolve) => {
    finish = resolve
  })
  const body = JSON.stringify({ context_token: contextToken, content: REPLY, msg_type: 'text' })
  const next = () => connection.post('/ilink/bot/sendmessage', body)
  const connection = openConnection({
    port,
    token,
    onBroken: giveUp,
    onAnswer(status, answer) {
      if (status !== 200 || !answer.startsWith('{"ret":0,')) failed += 1
      left -= 1
      if (left === 0) finish(failed)
      else next()
    },
  })
  const send = () => {
    next()
    return finished
  }
  return { opened: connection.opened, send, close: connection.close }
}

/** What stands behind the last `head` in `text`, up to the next quote; empty when there is none. */
function lastString(text: string, head: string): string {
  const at = text.lastIndexOf(head)
  return at === -1 ? '' : text.slice(at + head.length, text.indexOf('"', at + head.length))
}

function giveUp(error: unknown): void {
  problem ??= error instanceof Error ? error.message : String(error)
  process.send?.({ ok: false, problem })
}
