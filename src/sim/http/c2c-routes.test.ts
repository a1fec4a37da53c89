import { createDecipheriv, randomBytes } from 'node:crypto'
import { Type } from 'typebox'
import { expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { checker } from '../../kit/schema.ts'
import { encrypt } from '../media.ts'
import { type TestSim, testSim } from '../support.contract.ts'

const readUploadUrl = checker(
  Type.Object({ ret: Type.Literal(0), upload_param: Type.String(), upload_full_url: Type.String() }),
)
const Media = Type.Object({ encrypt_query_param: Type.String(), aes_key: Type.String(), full_url: Type.String() })
const readImage = checker(Type.Object({ image_item: Type.Object({ media: Media, aeskey: Type.String() }) }))
const readFile = checker(
  Type.Object({
    file_item: Type.Object({ media: Media, file_name: Type.String(), len: Type.String(), md5: Type.String() }),
  }),
)
const readMessages = checker(Type.Object({ msgs: Type.Array(Type.Object({ item_list: Type.Array(Type.Unknown()) })) }))

test('an image and a file that a user sends can be fetched and decrypted byte for byte', async () => {
  const sim = await testSim()
  const [image, file] = [randomBytes(70_001), randomBytes(32)]
  sim.control.say({ user: 'ann', text: 'look', image_base64: image.toString('base64') })
  sim.control.say({ user: 'ann', file_base64: file.toString('base64'), file_name: 'a.pdf' })
  const { msgs } = readMessages((await sim.poll()).json)
  const { image_item } = readImage(msgs[0]?.item_list[1])
  expect(await fetchPlain(image_item.media.full_url, image_item.aeskey)).toEqual(image)
  const { file_item } = readFile(msgs[1]?.item_list[0])
  expect(file_item).toMatchObject({ file_name: 'a.pdf', len: '32' })
  const key = Buffer.from(file_item.media.aes_key, 'base64').toString()
  expect(key).toMatch(/^[0-9a-f]{32}$/)
  const byParam = `${sim.url}/c2c/download?encrypted_query_param=${file_item.media.encrypt_query_param}`
  expect(await fetchPlain(byParam, key)).toEqual(file)
})

const KEY_TEXTS = [
  (key: Buffer) => Buffer.from(key.toString('hex')).toString('base64'),
  (key: Buffer) => key.toString('base64'),
]

verifies(
  'sim:media:upload',
  'what a bot uploads and sends is seen decrypted, whichever way its key is written',
  async () => {
    for (const encodeKey of KEY_TEXTS) {
      const sim = await testSim()
      sim.control.say({ user: 'ann', text: 'send me an image' })
      const [plain, key] = [randomBytes(2 * 1024 * 1024), randomBytes(16)]
      const uploaded = await upload(sim, encrypt(plain, key))
      expect(uploaded.status).toBe(200)
      const media = { encrypt_query_param: uploaded.headers.get('x-encrypted-param'), aes_key: encodeKey(key) }
      const item_list = [{ type: 2, image_item: { media, mid_size: 1 } }]
      const sent = await sim.bot('sendmessage', { msg: { to_user_id: 'ann@im.wechat', item_list } })
      const id = /\d{19}/.exec(sent.text)?.[0] ?? ''
      expect(sim.control.media({ user: 'ann', message_id: id }).equals(plain)).toBe(true)
      const answer = await fetch(`${sim.url}/sim/media?user=ann&message_id=${id}`)
      expect(Buffer.from(await answer.arrayBuffer()).equals(plain)).toBe(true)
    }
  },
)

test('uploads that were not announced, or are not as announced, are refused with a reason in a header', async () => {
  const sim = await testSim()
  const { url } = await announce(sim, 16)
  const refused = async (address: string, body: Uint8Array, reason: RegExp) => {
    const answer = await fetch(address, { method: 'POST', body })
    expect(answer.status).toBe(400)
    expect(answer.headers.get('x-error-message')).toMatch(reason)
  }
  await refused(`${sim.url}/c2c/upload?encrypted_query_param=x&filekey=f`, randomBytes(16), /unknown/)
  await refused(`${sim.url}/c2c/upload?filekey=f`, randomBytes(16), /encrypted_query_param is missing/)
  await refused(url.replace(/filekey=.*/, 'filekey=other'), randomBytes(16), /filekey/)
  await refused(url, randomBytes(32), /32 bytes and filesize said 16/)
  await refused(url, new Uint8Array(), /empty/)
  expect((await sim.get('/c2c/download?encrypted_query_param=x')).status).toBe(404)
  expect((await sim.bot('getuploadurl', {})).json).toMatchObject({ ret: -2, errmsg: 'filekey is missing.' })
})

test('an upload may have 32 MiB and no more', async () => {
  const sim = await testSim()
  const most = Buffer.alloc(32 * 1024 * 1024)
  expect((await upload(sim, most)).status).toBe(200)
  expect((await upload(sim, Buffer.concat([most, Buffer.alloc(16)]))).status).toBe(413)
})

test('media that is not there is told', async () => {
  const sim = await testSim()
  const { message_id } = sim.control.say({ user: 'ann', text: 'only text' })
  expect(await sim.get(`/sim/media?user=ann&message_id=${message_id}`)).toMatchObject({
    status: 404,
    json: { error: { code: 'no_media' } },
  })
  expect(await sim.get('/sim/media?user=ann&message_id=1')).toMatchObject({
    status: 404,
    json: { error: { code: 'unknown_message' } },
  })
})

async function announce(sim: TestSim, filesize: number): Promise<{ url: string }> {
  const filekey = randomBytes(16).toString('hex')
  const got = await sim.bot('getuploadurl', { filekey, media_type: 1, filesize, no_need_thumb: true })
  const { upload_param, upload_full_url } = readUploadUrl(got.json)
  expect(upload_full_url).toContain(`${sim.url}/c2c/upload?encrypted_query_param=${upload_param}&filekey=${filekey}`)
  return { url: upload_full_url }
}

async function upload(sim: TestSim, ciphertext: Buffer): Promise<Response> {
  const { url } = await announce(sim, ciphertext.length)
  return fetch(url, {
    method: 'POST',
    body: new Uint8Array(ciphertext),
    headers: { 'content-type': 'application/octet-stream' },
  })
}

async function fetchPlain(url: string, keyHex: string): Promise<Buffer> {
  const ciphertext = Buffer.from(await (await fetch(url)).arrayBuffer())
  const decipher = createDecipheriv('aes-128-ecb', Buffer.from(keyHex, 'hex'), null)
  return Buffer.concat([decipher.update(ciphertext), decipher.final()])
}
