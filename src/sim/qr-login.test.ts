import { Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { checker } from '../kit/schema.ts'
import { BOT_ID, type TestSim, testSim } from './support.contract.ts'

const readCode = checker(
  Type.Object({ ret: Type.Literal(0), qrcode: Type.String(), qrcode_img_content: Type.String() }),
)
const readConfirmed = checker(Type.Object({ status: Type.Literal('confirmed'), bot_token: Type.String() }))

describe('a login', () => {
  verifies('sim:protocol:login', 'goes from wait over scaned to confirmed, with a fresh token', async () => {
    const sim = await testSim({ holdMs: 30 })
    const qrcode = await askForCode(sim)
    expect((await status(sim, qrcode)).json).toEqual({ ret: 0, status: 'wait' })
    expect(await sim.post('/sim/qr/scan', { qrcode, as: 'ann' })).toMatchObject({ json: { status: 'confirmed' } })
    expect((await status(sim, qrcode)).json).toEqual({ ret: 0, status: 'scaned' })
    const confirmed = (await status(sim, qrcode)).json
    expect(confirmed).toEqual({
      ret: 0,
      status: 'confirmed',
      bot_token: expect.stringContaining(`${BOT_ID}:`),
      ilink_bot_id: BOT_ID,
      ilink_user_id: 'ann@im.wechat',
      baseurl: sim.url,
    })
    expect((await status(sim, qrcode)).json).toEqual(confirmed)
  })

  test('wakes a status call that waits', async () => {
    const sim = await testSim()
    const qrcode = await askForCode(sim, 'POST')
    const waiting = status(sim, qrcode)
    sim.control.accounts.scan({ qrcode, confirm: false })
    expect((await waiting).json).toEqual({ ret: 0, status: 'scaned' })
    const stillWaiting = status(sim, qrcode)
    sim.control.accounts.scan({ qrcode })
    expect((await stillWaiting).json).toMatchObject({ status: 'confirmed', ilink_user_id: 'owner@im.wechat' })
  })

  test('ends the old token and the expired fault, and messages wait for the new token', async () => {
    const sim = await testSim()
    sim.control.faults.add({ kind: 'expired' })
    sim.control.say({ user: 'ann', text: 'kept' })
    const token = await logIn(sim)
    expect(sim.control.faults.list()).toEqual([])
    expect((await sim.bot('getupdates')).json).toMatchObject({ ret: -14 })
    expect((await sim.poll('', token)).texts).toEqual(['kept'])
  })

  test('reaches a poll that waits under the old token', async () => {
    const sim = await testSim()
    const poll = sim.bot('getupdates')
    await sim.parked()
    await logIn(sim)
    expect((await poll).json).toMatchObject({ ret: -14 })
  })

  test('makes the account it names', async () => {
    const sim = await testSim()
    const token = await logIn(sim, { bot: 'second' })
    sim.control.say({ user: 'ann', text: 'x', bot: 'second' })
    expect((await sim.poll('', token)).texts).toEqual(['x'])
    expect(sim.control.state().bots.map(({ name }) => name)).toEqual(['default', 'second'])
  })
})

describe('a verify code', () => {
  test('must be repeated by the bot', async () => {
    const sim = await testSim({ holdMs: 30 })
    const qrcode = await askForCode(sim)
    await sim.post('/sim/qr/scan', { qrcode, verify_code: '4711' })
    expect((await status(sim, qrcode)).json).toMatchObject({ status: 'scaned' })
    expect((await status(sim, qrcode)).json).toMatchObject({ status: 'need_verifycode' })
    expect((await status(sim, qrcode)).json).toMatchObject({ status: 'need_verifycode' })
    expect((await status(sim, qrcode, '1')).json).toMatchObject({ status: 'need_verifycode' })
    expect(sim.control.state().bots).toHaveLength(1)
    expect((await sim.bot('msg/notifystart')).json).toMatchObject({ ret: 0 })
    expect((await status(sim, qrcode, '4711')).json).toMatchObject({ status: 'confirmed', ilink_bot_id: BOT_ID })
  })

  test('is blocked after three wrong ones', async () => {
    const sim = await testSim({ holdMs: 30 })
    const qrcode = await askForCode(sim)
    sim.control.accounts.scan({ qrcode, verify_code: '4711' })
    const seen: unknown[] = []
    for (const code of ['1', '2', '3', '4711', '4711', '4711']) seen.push((await status(sim, qrcode, code)).json)
    expect(seen.at(-1)).toEqual({ ret: 0, status: 'verify_code_blocked' })
    expect((await sim.bot('msg/notifystart')).json).toMatchObject({ ret: 0 })
  })
})

describe('a code', () => {
  test('expires after two minutes and cannot be scanned then', async () => {
    let time = Date.now()
    const sim = await testSim({ now: () => time })
    const qrcode = await askForCode(sim)
    time += 120_000
    expect((await status(sim, qrcode)).json).toEqual({ ret: 0, status: 'expired' })
    const late = await sim.post('/sim/qr/scan', { qrcode })
    expect(late).toMatchObject({ status: 410, json: { error: { code: 'qr_expired' } } })
  })

  test('that nobody knows is expired for the bot and unknown to the phone', async () => {
    const sim = await testSim()
    expect((await status(sim, 'nonsense')).json).toEqual({ ret: 0, status: 'expired' })
    const scan = await sim.post('/sim/qr/scan', { qrcode: 'nonsense' })
    expect(scan).toMatchObject({ status: 404, json: { error: { code: 'unknown_qr', field: 'qrcode' } } })
    expect((await sim.get('/ilink/bot/get_qrcode_status')).json).toMatchObject({ ret: -2 })
  })

  test('is listed, and is worth one login', async () => {
    const sim = await testSim()
    const qrcode = await askForCode(sim)
    await askForCode(sim)
    expect((await sim.get(`/sim/qr?qrcode=${qrcode}`)).json).toMatchObject({ codes: [{ qrcode, status: 'wait' }] })
    expect(sim.control.accounts.qrCodes()).toHaveLength(2)
    sim.control.accounts.scan({ qrcode })
    const again = await sim.post('/sim/qr/scan', { qrcode })
    expect(again).toMatchObject({ status: 409, json: { error: { code: 'qr_used' } } })
  })
})

async function askForCode(sim: TestSim, method: 'GET' | 'POST' = 'GET'): Promise<string> {
  const path = '/ilink/bot/get_bot_qrcode?bot_type=3'
  const got = method === 'GET' ? await sim.get(path) : await sim.post(path, { local_token_list: [] })
  const { qrcode, qrcode_img_content } = readCode(got.json)
  expect(qrcode_img_content).toBe(`${sim.url}/sim/qr?qrcode=${qrcode}`)
  return qrcode
}

function status(sim: TestSim, qrcode: string, verifyCode?: string) {
  const code = verifyCode === undefined ? '' : `&verify_code=${verifyCode}`
  return sim.get(`/ilink/bot/get_qrcode_status?qrcode=${qrcode}${code}`)
}

async function logIn(sim: TestSim, options: { bot?: string } = {}): Promise<string> {
  const qrcode = await askForCode(sim)
  sim.control.accounts.scan({ qrcode, ...options })
  await status(sim, qrcode)
  return readConfirmed((await status(sim, qrcode)).json).bot_token
}
