import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { expect, onTestFinished, vi } from 'vitest'
import { OK, onlineClient, relayCall } from '../support/relay-calls.ts'
import { startTestHub, type TestHub } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), randomBytes(5_000)])

verifies('wire:media:pass-through', async () => {
  const hub = await startTestHub()
  const token = await onlineClient(hub, 'bot')
  const { body } = await relayCall(hub, token, 'getuploadurl', announced(PNG).body)
  expect(body).toMatchObject({ ...OK, upload_full_url: expect.stringContaining(`${hub.sim.url}/c2c/upload?`) })
  await hub.say('ann', 'look', { image_base64: PNG.toString('base64') })
  const { media } = (await hub.poll(token)).body.msgs[0].item_list[1].image_item
  expect(media.full_url).toContain(`${hub.sim.url}/c2c/download?`)
  expect((await fetch(`${hub.url}/c2c/download?encrypted_query_param=x`)).status).toBe(404)
})

verifies('wire:media:relay', 'a file goes up and down at the hub, in either form of the address', async () => {
  const hub = await startTestHub({ mediaRelay: true })
  const token = await onlineClient(hub, 'bot')
  await hub.say('ann', 'look', { image_base64: PNG.toString('base64') })
  const [message] = (await hub.poll(token)).body.msgs
  const { media, aeskey } = message.item_list[1].image_item
  for (const url of [media.full_url, `${hub.url}/c2c/download?encrypted_query_param=${media.encrypt_query_param}`]) {
    expect(url.startsWith(hub.url)).toBe(true)
    const file = Buffer.from(await (await fetch(url)).arrayBuffer())
    expect(decrypt(file, Buffer.from(aeskey, 'hex')).equals(PNG)).toBe(true)
  }

  const { stored, key } = await upload(hub, token, PNG)
  expect(stored).toMatch(/^swb_/)
  const again = await fetch(`${hub.url}/c2c/download?encrypted_query_param=${stored}`)
  expect(decrypt(Buffer.from(await again.arrayBuffer()), key).equals(PNG)).toBe(true)
  const image = { media: { encrypt_query_param: stored, aes_key: key.toString('base64'), encrypt_type: 1 } }
  const msg = { context_token: message.context_token, item_list: [{ type: 2, image_item: image }] }
  const sent = await relayCall(hub, token, 'sendmessage', { msg })
  expect(sent.status).toBe(200)
  const id = /"message_id":(\d+)/.exec(sent.text)?.[1] ?? ''
  expect(hub.sim.control.media({ user: 'ann', message_id: id }).equals(PNG)).toBe(true)
})

verifies(
  'wire:media:tickets',
  'a ticket ends with its client, and another client cannot send what it names',
  async () => {
    const hub = await startTestHub({ mediaRelay: true })
    const token = await onlineClient(hub, 'bot')
    const other = await onlineClient(hub, 'other')
    const { stored } = await upload(hub, token, PNG)
    await hub.say('ann', '@other hello')
    const [message] = (await hub.poll(other)).body.messages
    const image = { type: 2, image_item: { media: { encrypt_query_param: stored, aes_key: 'a' } } }
    const msg = { context_token: message.context_token, item_list: [image] }
    const refused = await relayCall(hub, other, 'sendmessage', { msg })
    expect(refused.status).toBe(400)
    expect(refused.body).toMatchObject({ ret: 400, errcode: 400, field: 'encrypt_query_param' })
    await hub.call('DELETE', '/hub/clients/bot')
    const gone = await fetch(`${hub.url}/c2c/download?encrypted_query_param=${stored}`)
    expect(gone.status).toBe(404)
    expect(gone.headers.get('x-error-message')).toContain('not known here')
  },
)

verifies('wire:media:fair', async () => {
  const hub = await startTestHub({ mediaRelay: true })
  const token = await onlineClient(hub, 'bot')
  const other = await onlineClient(hub, 'other')
  const { body } = announced(PNG)
  const { upload_full_url: url } = (await relayCall(hub, token, 'getuploadurl', body)).body
  const { port, pathname, search } = new URL(url)
  const stalled = Array.from({ length: 16 }, () => connect(Number(port), '127.0.0.1'))
  onTestFinished(() => stalled.forEach((socket) => void socket.destroy()))
  for (const socket of stalled)
    socket.write(`POST ${pathname}${search} HTTP/1.1\r\nhost: hub\r\ncontent-length: ${body.filesize}\r\n\r\n`)
  await vi.waitFor(async () => expect((await fetch(url, { method: 'POST', body: 'x' })).status).toBe(503), 20_000)
  expect((await upload(hub, other, PNG)).stored).toMatch(/^swb_/)
  for (const socket of stalled) socket.destroy()
  await vi.waitFor(async () => expect((await upload(hub, token, PNG)).stored).toMatch(/^swb_/), 20_000)
})

verifies(
  'wire:media:checks',
  'a file that is not the announced one is a 400 with its reason, and is not stored',
  async () => {
    const hub = await startTestHub({ mediaRelay: true })
    const token = await onlineClient(hub, 'bot')
    const { body, key } = announced(PNG)
    const { upload_full_url: url } = (await relayCall(hub, token, 'getuploadurl', body)).body
    const before = hub.sim.control.state().media_bytes
    const wrong = [
      encrypt(PNG, key).subarray(16),
      encrypt(Buffer.alloc(PNG.length), key),
      encrypt(PNG, randomBytes(16)),
    ]
    for (const bytes of wrong) {
      const answer = await fetch(url, { method: 'POST', body: new Uint8Array(bytes) })
      expect(answer.status).toBe(400)
      expect(answer.headers.get('x-error-message')).toMatch(/file/)
      expect(await answer.json()).toMatchObject({ ret: 400, errcode: 400 })
    }
    expect(hub.sim.control.state().media_bytes).toBe(before)
    const bad = await relayCall(hub, token, 'getuploadurl', { ...body, filesize: 17 })
    expect(bad.body).toMatchObject({ errcode: 400, field: 'filesize' })
    const good = await fetch(url, { method: 'POST', body: new Uint8Array(encrypt(PNG, key)) })
    expect(good.status).toBe(200)
  },
)

verifies('wire:media:limit', 'an announced file over 100 MiB, and a longer body, are a 413', async () => {
  const hub = await startTestHub({ mediaRelay: true })
  const token = await onlineClient(hub, 'bot')
  const { body } = announced(PNG)
  const big = await relayCall(hub, token, 'getuploadurl', { ...body, rawsize: 104_857_601, filesize: 104_857_616 })
  expect(big.body).toMatchObject({ ret: 413, errcode: 413 })
  const { filesize: _, rawsize: __, ...unsized } = body
  const { upload_full_url: url } = (await relayCall(hub, token, 'getuploadurl', unsized)).body
  const { pathname, search } = new URL(url)
  const answer = await new Promise<string>((resolve, reject) => {
    import('node:net').then(({ connect }) => {
      const socket = connect(Number(new URL(hub.url).port), '127.0.0.1')
      socket.once('error', reject)
      socket.once('data', (bytes) => {
        resolve(String(bytes))
        socket.destroy()
      })
      socket.write(`POST ${pathname}${search} HTTP/1.1\r\nhost: hub\r\ncontent-length: 104857648\r\n\r\n`)
    }, reject)
  })
  expect(answer).toMatch(/^HTTP\/1\.1 413 /)
})

verifies(
  'wire:media:relay',
  'when the file store fails, an upload is a 503 and a download is a 503, refused is a 422',
  async () => {
    const hub = await startTestHub({ mediaRelay: true })
    const token = await onlineClient(hub, 'bot')
    const { body, key } = announced(PNG)
    const { upload_full_url: url } = (await relayCall(hub, token, 'getuploadurl', body)).body
    const put = () => fetch(url, { method: 'POST', body: new Uint8Array(encrypt(PNG, key)) })
    hub.sim.control.faults.add({ kind: 'http_error', status: 500, only: 'upload', count: 1 })
    expect((await put()).status).toBe(503)
    hub.sim.control.faults.add({ kind: 'down', only: 'upload', count: 1 })
    expect((await put()).status).toBe(503)
    hub.sim.control.faults.add({ kind: 'http_error', status: 403, only: 'upload', count: 1 })
    expect((await put()).status).toBe(422)
    expect((await put()).status).toBe(200)
  },
)

verifies('wire:media:relay', 'behind a name of its own the hub gives out addresses with that name', async () => {
  const hub = await startTestHub({ mediaRelay: true, publicUrl: 'https://hub.example' })
  const token = await onlineClient(hub, 'bot')
  const { body } = await relayCall(hub, token, 'getuploadurl', announced(PNG).body)
  expect(body.upload_full_url).toMatch(/^https:\/\/hub\.example\/c2c\/upload\?encrypted_query_param=swb_/)
})

/** A file as a client announces it. */
function announced(plain: Buffer) {
  const key = randomBytes(16)
  const body = {
    filekey: randomBytes(16).toString('hex'),
    media_type: 1,
    to_user_id: 'ann@im.wechat',
    rawsize: plain.length,
    rawfilemd5: createHash('md5').update(plain).digest('hex'),
    filesize: encrypt(plain, key).length,
    no_need_thumb: true,
    aeskey: key.toString('hex'),
  }
  return { key, body }
}

async function upload(hub: TestHub, token: string, plain: Buffer) {
  const { key, body } = announced(plain)
  const { upload_param: param } = (await relayCall(hub, token, 'getuploadurl', body)).body
  const url = `${hub.url}/c2c/upload?encrypted_query_param=${param}&filekey=${body.filekey}`
  const answer = await fetch(url, { method: 'POST', body: new Uint8Array(encrypt(plain, key)) })
  expect(answer.status).toBe(200)
  return { key, stored: answer.headers.get('x-encrypted-param') ?? '' }
}

function encrypt(plain: Buffer, key: Buffer): Buffer {
  const cipher = createCipheriv('aes-128-ecb', key, null)
  return Buffer.concat([cipher.update(plain), cipher.final()])
}

function decrypt(bytes: Buffer, key: Buffer): Buffer {
  const decipher = createDecipheriv('aes-128-ecb', key, null)
  return Buffer.concat([decipher.update(bytes), decipher.final()])
}
