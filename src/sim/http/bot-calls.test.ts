import { describe, expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { BOT_ID, sendBody, type TestSim, testSim } from '../support.contract.ts'

/** Every fault is set over HTTP, as a tester would, and struck over a socket, as a bot would see it. */
async function faulty(fault: object, config: { now?: () => number; holdMs?: number } = {}): Promise<TestSim> {
  const sim = await testSim(config)
  sim.control.say({ user: 'ann', text: 'before' })
  expect(await sim.post('/sim/fault', fault)).toMatchObject({ status: 200, json: fault })
  return sim
}

async function cleared(sim: TestSim): Promise<void> {
  expect((await sim.delete('/sim/fault')).json).toEqual({ cleared: 1 })
  expect((await sim.get('/sim/fault')).json).toEqual({ faults: [] })
  expect((await sim.send('ann', 'works')).json).toMatchObject({ ret: 0, message_id: expect.any(String) })
}

describe('down', () => {
  verifies('sim:fault:down', 'breaks every bot call and no other, until it is cleared', async () => {
    const sim = await faulty({ kind: 'down' })
    await expect(sim.send('ann', 'x')).rejects.toThrow('fetch failed')
    await expect(sim.poll()).rejects.toThrow('fetch failed')
    await expect(sim.get('/ilink/bot/get_bot_qrcode')).rejects.toThrow('fetch failed')
    await expect(sim.get('/c2c/download?encrypted_query_param=x')).rejects.toThrow('fetch failed')
    expect((await sim.get('/sim/state')).json).toMatchObject({ sends: 0, faults: [{ kind: 'down' }] })
    await cleared(sim)
  })

  test('cuts the polls that wait', async () => {
    const sim = await testSim()
    const poll = sim.poll()
    await sim.parked()
    sim.control.faults.add({ kind: 'down' })
    await expect(poll).rejects.toThrow('fetch failed')
    await sim.parked(0)
  })

  test('ends by itself after for_ms', async () => {
    let time = Date.now()
    const sim = await faulty({ kind: 'down', for_ms: 1_000 }, { now: () => time })
    await expect(sim.send('ann', 'x')).rejects.toThrow('fetch failed')
    time += 1_000
    expect((await sim.send('ann', 'x')).json).toMatchObject({ ret: 0 })
    expect(sim.control.faults.list()).toEqual([])
  })

  test('strikes one endpoint with only', async () => {
    const sim = await testSim()
    const poll = sim.poll()
    await sim.parked()
    sim.control.faults.add({ kind: 'down', only: 'sendmessage' })
    await expect(sim.send('ann', 'x')).rejects.toThrow('fetch failed')
    sim.control.say({ user: 'ann', text: 'polls go on' })
    expect((await poll).texts).toEqual(['polls go on'])
  })
})

describe('expired', () => {
  const timeout = { ret: -14, errcode: -14, errmsg: 'session timeout' }

  verifies(
    'sim:fault:expired',
    'answers -14 to polls and sends until it is cleared; notifystart still works',
    async () => {
      const sim = await faulty({ kind: 'expired' })
      expect(await sim.bot('getupdates')).toMatchObject({ status: 200, json: timeout })
      expect((await sim.send('ann', 'x')).json).toEqual(timeout)
      expect((await sim.bot('msg/notifystart')).json).toMatchObject({ ret: 0 })
      await cleared(sim)
      expect((await sim.poll()).texts).toEqual(['before'])
    },
  )

  test('reaches a poll that waits', async () => {
    const sim = await testSim()
    const poll = sim.bot('getupdates')
    await sim.parked()
    sim.control.faults.add({ kind: 'expired' })
    expect((await poll).json).toEqual(timeout)
  })

  test('strikes one account with bot', async () => {
    const sim = await testSim()
    const { bot_token } = sim.control.accounts.add({ name: 'second' })
    expect(sim.control.faults.add({ kind: 'expired', bot: 'default' })).toMatchObject({ bot: BOT_ID })
    sim.control.say({ user: 'ann', text: 'x', bot: 'second' })
    expect((await sim.poll('', bot_token)).texts).toEqual(['x'])
    expect((await sim.bot('getupdates')).json).toEqual(timeout)
  })
})

describe('sends', () => {
  verifies('sim:fault:throttle', 'are throttled count times', async () => {
    const sim = await faulty({ kind: 'throttle', count: 2 })
    const throttled = { ret: -2, errcode: -2, errmsg: 'rate limited' }
    expect((await sim.send('ann', '1')).json).toEqual(throttled)
    expect(sim.control.faults.list()).toMatchObject([{ kind: 'throttle', count: 2, left: 1 }])
    expect((await sim.send('ann', '2')).json).toEqual(throttled)
    expect((await sim.send('ann', '3')).json).toMatchObject({ ret: 0 })
    expect(await textsOf(sim)).toEqual(['before', '3'])
  })

  test('are throttled until it is cleared', async () => {
    const sim = await faulty({ kind: 'throttle' })
    for (const text of ['1', '2', '3']) expect((await sim.send('ann', text)).json).toMatchObject({ ret: -2 })
    await cleared(sim)
  })

  test('are refused with the code and text given', async () => {
    const sim = await faulty({ kind: 'refuse_send', ret: -3, errmsg: 'who is that' })
    expect((await sim.send('ann', 'x')).json).toEqual({ ret: -3, errcode: -3, errmsg: 'who is that' })
    await cleared(sim)
  })

  test('are accepted without an id, and nobody sees them', async () => {
    const sim = await faulty({ kind: 'unconfirmed', count: 1 })
    expect((await sim.send('ann', 'lost')).text).toBe('{"ret":0}')
    await sim.send('ann', 'seen')
    expect(await textsOf(sim)).toEqual(['before', 'seen'])
  })
})

describe('duplicate', () => {
  verifies('sim:fault:duplicate', 'delivers each message twice with the same id', async () => {
    const sim = await testSim()
    await sim.post('/sim/fault', { kind: 'duplicate', count: 1 })
    const { message_id } = sim.control.say({ user: 'ann', text: 'twice' })
    sim.control.say({ user: 'ann', text: 'once' })
    const got = await sim.poll()
    expect(got.texts).toEqual(['twice', 'twice', 'once'])
    expect(got.text.split(`"message_id":${message_id},`)).toHaveLength(3)
    expect(sim.control.state()).toMatchObject({ said: 2, delivered: 3 })
    expect(await textsOf(sim)).toEqual(['twice', 'once'])
  })

  test('delivers it again under a fresh id with the same time and seq', async () => {
    const sim = await testSim()
    await sim.post('/sim/fault', { kind: 'duplicate', fresh_id: true })
    sim.control.say({ user: 'ann', text: 'twice' })
    const { text } = await sim.poll()
    const ids = [...text.matchAll(/"message_id":(\d{19})/g)].map(([, id]) => id)
    expect(new Set(ids).size).toBe(2)
    const same = [...text.matchAll(/"seq":(\d+)|"create_time_ms":(\d+)/g)].map(([all]) => all)
    expect(same.slice(0, 2)).toEqual(same.slice(2))
  })
})

describe('malformed', () => {
  const SIGNS = { not_an_object: '"not an object"', no_sender: 'from nobody', bad_items: '"item_list":"not a list"' }
  verifies('sim:fault:malformed', 'puts one entry among the next batch, in each shape', async () => {
    for (const [shape, sign] of Object.entries(SIGNS)) {
      const sim = await testSim({ holdMs: 5 })
      await sim.post('/sim/fault', { kind: 'malformed', shape })
      expect((await sim.poll()).texts).toEqual([])
      sim.control.sayAll([
        { user: 'ann', text: '1' },
        { user: 'ann', text: '2' },
      ])
      const got = await sim.poll()
      expect(got.texts).toEqual(['1', expect.stringContaining(sign), '2'])
      expect((await sim.poll()).texts).toEqual(['1', '2'])
    }
  })
})

test('bad_json cuts the answer to a poll in half, and the messages come again', async () => {
  const sim = await faulty({ kind: 'bad_json', count: 1 })
  const got = await sim.bot('getupdates')
  expect(got.text).toMatch(/^\{"ret":0,"msgs":\[\{"seq"/)
  expect(got.json).toBeUndefined()
  expect((await sim.poll()).texts).toEqual(['before'])
})

test('http_error answers every bot call, or one, with a status', async () => {
  const sim = await faulty({ kind: 'http_error', status: 503 })
  expect((await sim.send('ann', 'x')).status).toBe(503)
  expect((await sim.bot('getupdates')).status).toBe(503)
  await cleared(sim)
  sim.control.faults.add({ kind: 'http_error', status: 401, only: 'getupdates' })
  expect((await sim.bot('getupdates')).status).toBe(401)
  expect((await sim.send('ann', 'x')).status).toBe(200)
})

describe('slow', () => {
  verifies('sim:fault:slow', 'does at once what is asked, and tells it late', async () => {
    const sim = await faulty({ kind: 'slow', delay_ms: 150, only: 'sendmessage' })
    const before = performance.now()
    const sending = sim.send('ann', 'late')
    const seen = await sim.control.conversation({ user: 'ann', after: 1, waitMs: 5_000 })
    expect(seen.messages).toMatchObject([{ text: 'late' }])
    await sending
    expect(performance.now() - before).toBeGreaterThanOrEqual(140)
    expect((await sim.poll()).texts).toEqual(['before'])
  })

  test('applies to refusals too', async () => {
    const sim = await faulty({ kind: 'slow', delay_ms: 50 })
    const before = performance.now()
    expect((await sim.bot('sendmessage', sendBody('nobody', 'x'))).json).toMatchObject({ ret: -3 })
    expect(performance.now() - before).toBeGreaterThanOrEqual(45)
  })
})

async function textsOf(sim: TestSim): Promise<string[]> {
  return (await sim.control.conversation({ user: 'ann' })).messages.map(({ text }) => text)
}
