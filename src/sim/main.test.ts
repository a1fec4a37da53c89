import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { silentLog } from '../kit/log.ts'
import { startSim } from './main.ts'
import { BOT_TOKEN, testSim } from './support.contract.ts'

test('stopping answers every call that waits and takes less than a second', async () => {
  const sim = await testSim({ holdMs: 60_000 })
  await sim.get('/ilink/bot/get_bot_qrcode')
  const qrcode = sim.control.accounts.qrCodes()[0]?.qrcode
  const waiting = [
    sim.poll(),
    sim.get('/sim/conversation?user=ann&wait_ms=60000'),
    sim.get(`/ilink/bot/get_qrcode_status?qrcode=${qrcode}`),
  ]
  await sim.parked()
  await sim.get('/health')
  const before = performance.now()
  await sim.stop()
  expect(performance.now() - before).toBeLessThan(1_000)
  const [poll, conversation, status] = await Promise.all(waiting)
  expect(poll?.json).toMatchObject({ ret: 0, msgs: [] })
  expect(conversation?.json).toMatchObject({ messages: [] })
  expect(status?.json).toMatchObject({ status: 'wait' })
})

test('stopping does not wait for a connection that says nothing', async () => {
  const sim = await testSim()
  const socket = connect(sim.port, sim.host)
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('connect', resolve))
  socket.write('POST /sim/say HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{')
  const before = performance.now()
  await sim.stop()
  expect(performance.now() - before).toBeLessThan(1_000)
})

test('the address it tells can be called, wherever it listens', async () => {
  for (const host of ['127.0.0.1', '0.0.0.0', '::1', 'localhost']) {
    const sim = await startSim({ host, port: 0, botToken: BOT_TOKEN, holdMs: 1_000, log: silentLog })
    expect((await fetch(`${sim.url}/health`)).status).toBe(200)
    await sim.stop()
  }
})

test('a port that is taken is told', async () => {
  const sim = await testSim()
  const config = { host: '127.0.0.1', port: sim.port, botToken: BOT_TOKEN, holdMs: 1_000, log: silentLog }
  await expect(startSim(config)).rejects.toMatchObject({ code: 'address_in_use' })
})
