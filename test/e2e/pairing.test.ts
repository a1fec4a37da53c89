import { describe, expect, test } from 'vitest'
import { startTestHub, type TestHub } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

describe.each(['/relay/bot', '/ilink/bot'])('under %s', (prefix) => {
  verifies(
    ['pairing:wire:begin', 'pairing:wire:confirmed'],
    `a client under ${prefix} gets its own token`,
    async () => {
      const hub = await startTestHub()
      const { qrcode, page, id } = await begin(hub, prefix)
      expect(page).toBe(`${hub.url}/hub/pair/${id}`)
      expect(page).not.toContain(qrcode)
      expect((await status(hub, qrcode, prefix)).body).toEqual({ ret: 0, errcode: 0, errmsg: '', status: 'wait' })
      const approved = await approve(hub, id, { name: 'helper', user: 'ann@im.wechat' })
      expect(approved.body).toMatchObject({ id, status: 'approved', name: 'helper' })
      expect(approved.text).not.toContain('vhub_')
      const { body } = await status(hub, qrcode, prefix)
      expect(body).toEqual({
        ret: 0,
        errcode: 0,
        errmsg: '',
        status: 'confirmed',
        bot_token: expect.stringMatching(/^vhub_[0-9a-f]{32}$/),
        ilink_bot_id: expect.stringMatching(/^[0-9a-f]{12}@im\.bot$/),
        ilink_user_id: 'ann@im.wechat',
        baseurl: hub.url,
      })
      expect((await hub.poll(body.bot_token)).status).toBe(200)
      expect((await hub.call('GET', '/hub/clients')).body.clients).toMatchObject([{ name: 'helper', status: 'online' }])
    },
  )
})

verifies('pairing:wire:post', async () => {
  const lines: string[] = []
  const note = (text: string, fields?: object) => void lines.push(text + JSON.stringify(fields ?? {}))
  const hub = await startTestHub({ log: { debug: note, info: note, warn: note, error: note } })
  const body = { local_token_list: ['abc@im.bot:very-secret'] }
  const answer = await hub.call('POST', '/ilink/bot/get_bot_qrcode?bot_type=3', { body })
  expect(answer.body).toMatchObject({ ret: 0, qrcode: expect.any(String), qrcode_img_content: expect.any(String) })
  // Whatever is in the body, and if it is no JSON at all.
  expect((await hub.call('POST', '/ilink/bot/get_bot_qrcode', { body: '{broken very-secret' })).status).toBe(200)
  expect(lines.join('\n') + (await hub.call('GET', '/hub/pairings')).text).not.toContain('very-secret')
})

verifies('pairing:wire:once', async () => {
  const hub = await startTestHub()
  const { qrcode, id } = await begin(hub)
  await approve(hub, id, { name: 'helper' })
  // Two at once: one gets it.
  const both = await Promise.all([status(hub, qrcode), status(hub, qrcode)])
  expect(both.map(({ body }) => body.status).sort()).toEqual(['confirmed', 'expired'])
  expect((await status(hub, qrcode)).body.status).toBe('expired')
  expect((await status(hub, id)).body.status).toBe('expired')
  expect((await hub.call('GET', '/hub/pairings')).body.pairings).toMatchObject([{ id, status: 'delivered' }])
})

verifies(['pairing:admin:never-automatic', 'pairing:admin:door'], async () => {
  const hub = await startTestHub({ adminToken: 'secret' })
  const { qrcode, id, page } = await begin(hub)
  for (const token of [undefined, 'wrong', qrcode]) {
    for (const path of [`/hub/pairings/${id}/approve`, `/hub/pairings/${id}/reject`])
      expect((await hub.call('POST', path, { body: { name: 'x' }, token })).status).toBe(401)
    expect((await hub.call('GET', '/hub/pairings', { token })).status).toBe(401)
  }
  const asked = await fetch(page)
  expect([asked.status, await asked.text()]).toEqual([401, expect.stringContaining('name="token"')])
  for (let n = 0; n < 3; n += 1) expect((await status(hub, qrcode)).body.status).toBe('wait')
  expect((await hub.call('GET', '/hub/clients', { token: 'secret' })).body.total).toBe(0)
})

verifies('pairing:admin:page', async () => {
  const hub = await startTestHub({ adminToken: 'secret' })
  await hub.register('taken')
  const { qrcode, page } = await begin(hub)
  // Sign in for this page, and come back to it.
  const signedIn = await fetch(`${hub.url}/hub/ui/sign-in`, {
    method: 'POST',
    body: new URLSearchParams({ token: 'secret' }),
    headers: { referer: page, origin: hub.url },
    redirect: 'manual',
  })
  expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, new URL(page).pathname])
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
  const shown = await fetch(page, { headers: { cookie } })
  expect(shown.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(await shown.text()).toContain('Approve')
  expect((await status(hub, qrcode)).body.status).toBe('scaned')

  const post = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
    fetch(page, {
      method: 'POST',
      body: new URLSearchParams(fields),
      headers: { cookie, origin: hub.url, ...headers },
      redirect: 'manual',
    })
  expect((await post({ name: 'x', do: 'approve' }, { origin: 'https://evil.example' })).status).toBe(403)
  expect((await post({ name: '', do: 'approve' })).status).toBe(400)
  const taken = await post({ name: 'taken', do: 'approve' })
  expect([taken.status, await taken.text()]).toEqual([409, expect.stringContaining('tick the box')])
  expect((await post({ name: '<b>new</b>', do: 'approve' })).status).toBe(303)
  expect(await (await fetch(page, { headers: { cookie } })).text()).toContain('&lt;b&gt;new&lt;/b&gt;')
  expect((await status(hub, qrcode)).body.status).toBe('confirmed')
})

verifies('pairing:admin:replace', async () => {
  const hub = await startTestHub()
  const old = await hub.register('helper')
  await hub.say('ann', 'waits')
  const { qrcode, id } = await begin(hub)
  const refused = await approve(hub, id, { name: 'helper' })
  expect([refused.status, refused.body.error.code]).toEqual([409, 'name_taken'])
  expect((await approve(hub, id, { name: 'helper', replace: true })).status).toBe(200)
  expect((await approve(hub, id, { name: 'helper', replace: true })).body.error.code).toBe('conflict')
  const { bot_token: fresh } = (await status(hub, qrcode)).body
  expect((await hub.poll(old)).status).toBe(401)
  expect((await hub.poll(fresh)).body.messages).toMatchObject([{ content: 'waits' }])
})

verifies('pairing:admin:reject', async () => {
  const hub = await startTestHub()
  const { qrcode, id } = await begin(hub)
  expect((await hub.call('POST', `/hub/pairings/${id}/reject`)).body.status).toBe('rejected')
  expect((await status(hub, qrcode)).body.status).toBe('expired')
  const late = await approve(hub, id, { name: 'x' })
  expect([late.status, late.body.error.code]).toEqual([409, 'conflict'])
  expect((await approve(hub, 'nothing', { name: 'x' })).status).toBe(404)
  expect((await hub.call('GET', '/hub/clients')).body.total).toBe(0)
})

verifies('pairing:limits:expiry', async () => {
  const hub = await startTestHub()
  const waiting = await begin(hub)
  const approved = await begin(hub)
  hub.advance(4 * 60_000)
  await approve(hub, approved.id, { name: 'late' })
  hub.advance(61_000)
  expect((await status(hub, waiting.qrcode)).body.status).toBe('expired')
  // Approved in time it is good for two more minutes, to be fetched.
  hub.advance(61_000)
  expect((await status(hub, approved.qrcode)).body.status).toBe('expired')
  const { pairings } = (await hub.call('GET', '/hub/pairings')).body
  expect(pairings).toMatchObject([{ status: 'expired' }, { status: 'expired' }])
})

verifies('pairing:limits:rate', async () => {
  const hub = await startTestHub()
  for (let n = 0; n < 5; n += 1) await begin(hub)
  const refused = await hub.call('GET', '/ilink/bot/get_bot_qrcode')
  expect(refused.status).toBe(429)
  expect(refused.body).toMatchObject({ ret: 429, errcode: 429, errmsg: expect.stringContaining('admin') })
  expect(refused.headers.get('retry-after')).toBe('30')
  hub.advance(5 * 60_000 + 1)
  expect((await hub.call('GET', '/ilink/bot/get_bot_qrcode')).status).toBe(200)
})

test('a client that hung up does not cost the token', async () => {
  const hub = await startTestHub()
  const { qrcode, id } = await begin(hub)
  const gone = new AbortController()
  const first = hub.call('GET', `/ilink/bot/get_qrcode_status?qrcode=${qrcode}`, { signal: gone.signal })
  setImmediate(() => gone.abort())
  await expect(first).rejects.toThrow()
  await approve(hub, id, { name: 'helper' })
  expect((await status(hub, qrcode)).body.status).toBe('confirmed')
})

async function begin(hub: TestHub, prefix = '/ilink/bot') {
  const { body } = await hub.call('GET', `${prefix}/get_bot_qrcode?bot_type=3`)
  const page: string = body.qrcode_img_content
  return { qrcode: String(body.qrcode), page, id: page.slice(page.lastIndexOf('/') + 1) }
}

function approve(hub: TestHub, id: string, body: object) {
  return hub.call('POST', `/hub/pairings/${id}/approve`, { body })
}

function status(hub: TestHub, qrcode: string, prefix = '/ilink/bot') {
  return hub.call('GET', `${prefix}/get_qrcode_status?qrcode=${qrcode}`)
}
