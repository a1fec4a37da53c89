import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startHubProcess } from '../support/hub-process.ts'
import { soon } from '../support/soon.ts'

/** More than the 511 that Node has wait by itself. */
const CLIENTS = 1_500

test('thousands that come back at once wait to be taken, while the hub is busy', async () => {
  const { url, hub } = await startHubProcess()
  const { child } = hub()
  // Busy for as long as this lasts: nothing is taken meanwhile.
  child.kill('SIGSTOP')
  const sockets: Socket[] = []
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  const states = { connected: 0, answered: 0, broken: 0 }
  for (let index = 0; index < CLIENTS; index += 1) {
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' })
    socket.on('connect', () => {
      states.connected += 1
      socket.write('GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')
    })
    socket.once('data', () => {
      states.answered += 1
    })
    socket.on('error', () => {
      states.broken += 1
    })
    sockets.push(socket)
  }
  await soon(() => expect(states).toEqual({ connected: CLIENTS, answered: 0, broken: 0 }))
  child.kill('SIGCONT')
  await soon(() => expect(states).toEqual({ connected: CLIENTS, answered: CLIENTS, broken: 0 }))
})
