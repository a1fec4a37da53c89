import { describe, expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { BOT_ID, sendBody, testSim } from '../support.contract.ts'

const TOO_LATE_MS = 11 * 60_000

describe('getupdates', () => {
  test('a message has every field, and its 64-bit id is an exact number in the text', async () => {
    const sim = await testSim()
    const { message_id, context_token } = sim.control.say({ user: 'ann', text: 'hello' })
    const got = await sim.poll()
    expect(got.text).toContain(`"message_id":${message_id},`)
    expect(BigInt(Number(message_id))).not.toBe(BigInt(message_id!))
    expect(got.json).toEqual({
      ret: 0,
      msgs: [
        {
          seq: 1,
          message_id,
          from_user_id: 'ann@im.wechat',
          to_user_id: BOT_ID,
          client_id: expect.any(String),
          create_time_ms: expect.any(Number),
          update_time_ms: expect.any(Number),
          session_id: expect.any(String),
          message_type: 1,
          message_state: 2,
          item_list: [{ type: 1, text_item: { text: 'hello' } }],
          context_token,
        },
      ],
      get_updates_buf: expect.any(String),
      longpolling_timeout_ms: 5_000,
    })
  })

  test('a poll waits until something is said', async () => {
    const sim = await testSim()
    const poll = sim.poll()
    await sim.parked()
    sim.control.say({ user: 'ann', text: 'at last' })
    expect((await poll).texts).toEqual(['at last'])
  })

  verifies(
    'sim:protocol:getupdates',
    'a poll that hears nothing is answered with nothing and a cursor when the hold is over',
    async () => {
      const sim = await testSim({ holdMs: 20 })
      const first = await sim.poll()
      expect(first.texts).toEqual([])
      sim.control.say({ user: 'ann', text: 'x' })
      expect((await sim.poll(first.cursor)).texts).toEqual(['x'])
    },
  )

  verifies(
    'sim:protocol:getupdates',
    'the same cursor brings the same messages again, the next one acknowledges them',
    async () => {
      const sim = await testSim()
      sim.control.sayAll([
        { user: 'ann', text: '1' },
        { user: 'bob', text: '2' },
      ])
      const first = await sim.poll()
      const again = await sim.poll('')
      expect(again.text).toBe(first.text)
      expect(sim.control.state()).toMatchObject({ said: 2, delivered: 2, acknowledged: 0, not_fetched: 0 })
      sim.control.say({ user: 'ann', text: '3' })
      expect(sim.control.state()).toMatchObject({ not_fetched: 1 })
      const next = await sim.poll(first.cursor)
      expect(next.texts).toEqual(['3'])
      expect((await sim.poll(first.cursor)).text).toBe(next.text)
      expect(sim.control.state()).toMatchObject({ said: 3, delivered: 3, acknowledged: 2 })
    },
  )

  test('a cursor of another process, and garbage, start with what is not acknowledged', async () => {
    const [sim, other] = await Promise.all([testSim(), testSim()])
    other.control.say({ user: 'ann', text: 'elsewhere' })
    const foreign = (await other.poll()).cursor
    sim.control.say({ user: 'ann', text: '1' })
    const { cursor } = await sim.poll(foreign)
    sim.control.say({ user: 'ann', text: '2' })
    expect((await sim.poll('garbage')).texts).toEqual(['1', '2'])
    expect((await sim.poll(cursor)).texts).toEqual(['2'])
    expect((await sim.poll(foreign)).texts).toEqual(['2'])
  })

  test('the newest poll wins and the older one is answered with nothing at once', async () => {
    const sim = await testSim()
    const older = sim.poll()
    await sim.parked()
    const newer = sim.poll()
    expect((await older).texts).toEqual([])
    sim.control.say({ user: 'ann', text: 'for the newest' })
    expect((await newer).texts).toEqual(['for the newest'])
    expect(sim.control.state()).toMatchObject({ polls: 2, polls_displaced: 1 })
  })

  test('a poll whose caller hung up takes nothing with it', async () => {
    const sim = await testSim()
    const hangUp = new AbortController()
    const headers = { authorization: `Bearer ${sim.botToken}` }
    const request = { method: 'POST', body: '{}', headers, signal: hangUp.signal }
    const gone = fetch(`${sim.url}/ilink/bot/getupdates`, request)
    await sim.parked()
    hangUp.abort()
    await expect(gone).rejects.toThrow()
    await sim.parked(0)
    sim.control.say({ user: 'ann', text: 'still here' })
    expect(sim.control.state()).toMatchObject({ not_fetched: 1 })
    expect((await sim.poll()).texts).toEqual(['still here'])
  })

  test('many messages come in order, at most a hundred at a time', async () => {
    const sim = await testSim()
    const texts = Array.from({ length: 250 }, (_, at) => String(at))
    sim.control.sayAll(texts.map((text) => ({ user: 'ann', text })))
    const got: string[] = []
    for (let cursor = ''; got.length < 250; ) {
      const batch = await sim.poll(cursor)
      expect(batch.texts.length).toBeLessThanOrEqual(100)
      got.push(...batch.texts)
      cursor = batch.cursor
    }
    expect(got).toEqual(texts)
  })
})

describe('a token', () => {
  test.each([
    'getupdates',
    'sendmessage',
    'sendtyping',
    'getconfig',
    'getuploadurl',
    'msg/notifystart',
    'msg/notifystop',
  ])('that is wrong or missing gives -14 on %s', async (endpoint) => {
    const sim = await testSim()
    const refused = { ret: -14, errcode: -14, errmsg: 'session timeout' }
    expect(await sim.bot(endpoint, {}, 'wrong')).toMatchObject({ status: 200, json: refused })
    expect(await sim.post(`/ilink/bot/${endpoint}`, {})).toMatchObject({ status: 200, json: refused })
  })

  test('of another bot opens another inbox, and users of one are strangers to the other', async () => {
    const sim = await testSim()
    const { bot_token, bot_id } = sim.control.accounts.add({ name: 'second' })
    sim.control.say({ user: 'ann', text: 'to the first' })
    sim.control.say({ user: 'bob', text: 'to the second', bot: 'second' })
    expect((await sim.poll()).texts).toEqual(['to the first'])
    const second = await sim.poll('', bot_token)
    expect(second.texts).toEqual(['to the second'])
    expect(second.text).toContain(`"to_user_id":"${bot_id}"`)
    expect((await sim.bot('sendmessage', sendBody('ann', 'x'), bot_token)).json).toMatchObject({ ret: -3 })
    expect((await sim.bot('sendmessage', sendBody('bob', 'x'), bot_token)).json).toMatchObject({ ret: 0 })
  })
})

describe('sendmessage', () => {
  verifies(
    'sim:protocol:sendmessage',
    'answers with an exact id and keeps the message with all its fields',
    async () => {
      const sim = await testSim()
      sim.control.say({ user: 'ann', text: 'hi' })
      const item = '{"type":1,"text_item":{"text":"yes"},"msg_id":9007199254740993}'
      const msg = `{"to_user_id":"ann@im.wechat","client_id":"c9","context_token":"ctx","item_list":[${item}],"run_id":"r1"}`
      const sent = await sim.bot('sendmessage', `{"msg":${msg}}`)
      expect(sent.text).toMatch(/^\{"ret":0,"message_id":7\d{18}\}$/)
      const id = /\d{19}/.exec(sent.text)?.[0]
      const seen = await sim.get('/sim/conversation?user=ann&after=1')
      expect(seen.text).toContain(`"item_list":[${item}]`)
      expect(seen.json).toMatchObject({
        messages: [
          { index: 2, from: 'bot', text: 'yes', message_id: id, client_id: 'c9', context_token: 'ctx', run_id: 'r1' },
        ],
      })
      expect(sim.control.state().sends).toBe(1)
    },
  )

  test.each([
    ['no msg', {}, -2, /^msg is missing/],
    ['no recipient', { msg: { item_list: [{ type: 1 }] } }, -2, /to_user_id is missing/],
    ['no items', { msg: { to_user_id: 'ann@im.wechat' } }, -2, /item_list is missing/],
    ['empty items', { msg: { to_user_id: 'ann@im.wechat', item_list: [] } }, -2, /item_list/],
    ['an item that is none', { msg: { to_user_id: 'ann@im.wechat', item_list: ['x'] } }, -2, /item_list\.0/],
    ['an empty text', sendBody('ann', ''), -2, /text_item\.text required/],
    ['a text that is far too long', sendBody('ann', 'x'.repeat(5_001)), -2, /prepare failed/],
    ['a stranger', sendBody('bob', 'x'), -3, /unknown user/],
    ['a user in another case', sendBody('Ann', 'x'), -3, /unknown user/],
    ['a body that is no JSON', '{"msg":', -2, /not valid JSON/],
  ])('refuses %s', async (_what, body, ret, errmsg) => {
    const sim = await testSim()
    sim.control.say({ user: 'ann', text: 'hi' })
    const got = await sim.bot('sendmessage', body)
    expect(got).toMatchObject({ status: 200, json: { ret, errcode: ret, errmsg: expect.stringMatching(errmsg) } })
    expect((await sim.control.conversation({ user: 'ann' })).messages).toHaveLength(1)
  })
})

describe('typing', () => {
  verifies('sim:protocol:typing', 'shows with a ticket, until it is taken back', async () => {
    const sim = await testSim()
    sim.control.say({ user: 'ann', text: 'hi' })
    const typing = async (status: number, ticket: unknown) =>
      (await sim.bot('sendtyping', { ilink_user_id: 'ann@im.wechat', typing_ticket: ticket, status })).json
    const ticket = await ticketOf(sim, 'ann')
    expect(await typing(1, ticket)).toMatchObject({ ret: 0 })
    expect(await sim.control.conversation({ user: 'ann' })).toMatchObject({ typing: true })
    expect(await typing(2, ticket)).toMatchObject({ ret: 0 })
    expect(await sim.control.conversation({ user: 'ann' })).toMatchObject({ typing: false })
    expect(await typing(3, ticket)).toMatchObject({ ret: -2 })
    expect(await typing(1, `${ticket}x`)).toMatchObject({ ret: -2 })
  })

  test('needs a ticket of this user that is not older than ten minutes', async () => {
    let time = Date.now()
    const sim = await testSim({ now: () => time })
    sim.control.say({ user: 'ann', text: 'hi' })
    sim.control.say({ user: 'bob', text: 'hi' })
    const ticket = await ticketOf(sim, 'ann')
    const typing = async (user: string) =>
      (await sim.bot('sendtyping', { ilink_user_id: `${user}@im.wechat`, typing_ticket: ticket, status: 1 })).json
    expect(await typing('bob')).toMatchObject({ ret: -2 })
    expect(await typing('ann')).toMatchObject({ ret: 0 })
    time += TOO_LATE_MS
    expect(await typing('ann')).toMatchObject({ ret: -2, errmsg: expect.stringContaining('expired') })
  })

  test('getconfig needs a user', async () => {
    const sim = await testSim()
    expect((await sim.bot('getconfig', {})).json).toMatchObject({ ret: -2, errmsg: 'ilink_user_id required' })
    expect((await sim.bot('getconfig', { ilink_user_id: 'bob@im.wechat' })).json).toMatchObject({ ret: -3 })
  })
})

verifies('sim:protocol:notify', 'notifystart and notifystop are seen in the state', async () => {
  const sim = await testSim()
  expect((await sim.bot('msg/notifystart')).json).toMatchObject({ ret: 0 })
  expect(sim.control.state().bots).toMatchObject([{ started: true }])
  expect((await sim.bot('msg/notifystop')).json).toMatchObject({ ret: 0 })
  expect(sim.control.state().bots).toMatchObject([{ started: false }])
})

test('a wrong path, a wrong method and a body that is too large are told in the shape of the protocol', async () => {
  const sim = await testSim()
  expect(await sim.bot('nothing')).toMatchObject({ status: 404, json: { ret: -1, errcode: -1 } })
  expect(await sim.get('/ilink/bot/getupdates')).toMatchObject({ status: 405, json: { ret: -1 } })
  const large = await sim.bot('sendmessage', sendBody('ann', 'x'.repeat(1024 * 1024)))
  expect(large).toMatchObject({ status: 200, json: { ret: -2, errmsg: 'The body is too large.' } })
})

async function ticketOf(sim: Awaited<ReturnType<typeof testSim>>, user: string): Promise<string> {
  const got = await sim.bot('getconfig', { ilink_user_id: `${user}@im.wechat` })
  expect(got.json).toMatchObject({ ret: 0, typing_ticket: expect.any(String) })
  return /"typing_ticket":"([^"]+)"/.exec(got.text)?.[1] ?? ''
}
