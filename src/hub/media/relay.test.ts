import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import type { Client } from '../model.ts'
import { createMediaRelay } from './relay.ts'

const CDN = 'https://cdn.example/c2c'
const HUB = 'http://hub.example:8765'
const [ann, bob] = [client(1), client(2)]

verifies(
  'wire:media:relay',
  'references become tickets at every level and back again, and all else stays to the letter',
  () => {
    const relay = newRelay()
    const message =
      `{"item_list":[{"type":2,"big":7497484083968569736,"image_item":{"media":{"encrypt_query_param":"a+b/c=","full_url":"${CDN}/download?encrypted_query_param=a%2Bb","odd":1.50},` +
      `"thumb_media":{"encrypt_query_param" : "t"}},"ref_msg":{"message_item":{"file_item":{"media":{"encrypt_query_param":"q"}}}}},{"text_item":{"text":"\\"encrypt_query_param\\":\\"x\\""}}]}`
    const shown = relay.inbound(message, ann, HUB)
    expect(shown).not.toContain('"a+b/c="')
    expect(shown).not.toContain('cdn.example')
    expect(shown).toContain('"big":7497484083968569736')
    expect(shown).toContain('"odd":1.50')
    expect(shown).toContain('\\"encrypt_query_param\\":\\"x\\"')
    const { media } = JSON.parse(shown).item_list[0].image_item
    expect(media.full_url).toMatch(/^http:\/\/hub\.example:8765\/c2c\/download\?encrypted_query_param=swb_/)
    expect(relay.download(media.encrypt_query_param).url).toBe(`${CDN}/download?encrypted_query_param=a%2Bb%2Fc%3D`)
    expect(relay.download(paramOf(media.full_url)).url).toBe(`${CDN}/download?encrypted_query_param=a%2Bb`)
    expect(relay.outbound(shown, ann)).toBe(
      message.replace('"encrypt_query_param" : "t"', '"encrypt_query_param" : "t"'),
    )
  },
)

verifies(
  'wire:media:tickets',
  'a ticket is good for its client and purpose, for a time, and not when a letter is changed',
  () => {
    let now = 1_000
    const relay = newRelay(() => now)
    const ticket = JSON.parse(relay.inbound('{"encrypt_query_param":"p"}', ann, HUB)).encrypt_query_param
    expect(relay.download(ticket).clientId).toBe(ann.id)
    expect(() => relay.outbound(`{"encrypt_query_param":"${ticket}"}`, bob)).toThrow('not of a file')
    expect(() => relay.upload(ticket, null)).toThrow('not known here')
    for (const wrong of [
      `${ticket}x`,
      ticket.slice(0, -2),
      ticket.replace(/.$/, (c: string) => (c === 'A' ? 'Q' : 'A')),
      'p',
      'swb_',
      '',
    ])
      expect(() => relay.download(wrong), wrong).toThrow('not known here')
    expect(() => newRelay().download(ticket)).toThrow('not known here')
    now += 8 * 24 * 3_600_000
    expect(() => relay.download(ticket)).toThrow('not known here')
  },
)

verifies('wire:media:tickets', 'an address elsewhere than at the file store gets no ticket', () => {
  const relay = newRelay()
  for (const url of [
    'http://127.0.0.1/x',
    'https://cdn.example.evil/c2c/x',
    'https://user@cdn.example/c2c/x',
    'http://cdn.example/c2c',
    'https://cdn.example:444/',
  ]) {
    const message = JSON.stringify({ full_url: url })
    expect(relay.inbound(message, ann, HUB)).toBe(message)
    const answer = JSON.stringify({ upload_full_url: url, upload_param: 'u' })
    expect(relay.uploadAnswer(answer, { body: {}, client: ann, baseUrl: HUB })).toBe(answer)
  }
})

test('an upload answer has tickets in both forms, and one for the thumbnail', () => {
  const relay = newRelay()
  const body = { filekey: 'f k', filesize: 32, rawsize: 16, aeskey: 'ab', media_type: 1, thumb_filesize: 16 }
  const answer = `{"upload_param":"u","thumb_upload_param":"t","upload_full_url":"${CDN}/upload?x=1","more":9007199254740993}`
  const shown = relay.uploadAnswer(answer, { body, client: ann, baseUrl: HUB })
  expect(shown).toContain('"more":9007199254740993')
  const { upload_param: param, upload_full_url: url, thumb_upload_param: thumb } = JSON.parse(shown)
  expect(url).toBe(`${HUB}/c2c/upload?encrypted_query_param=${param}&filekey=f%20k`)
  expect(relay.upload(param, 'f k')).toMatchObject({
    url: `${CDN}/upload?x=1`,
    cipherBytes: 32,
    plainBytes: 16,
    mediaType: 1,
  })
  expect(relay.upload(thumb, null)).toMatchObject({
    url: `${CDN}/upload?encrypted_query_param=t&filekey=f%20k`,
    cipherBytes: 16,
  })
  expect(() => relay.upload(param, 'other')).toThrow('not known here')
})

function newRelay(now: () => number = Date.now) {
  return createMediaRelay({ key: randomBytes(32), cdnUrl: CDN, now })
}

function paramOf(url: string): string {
  return new URL(url).searchParams.get('encrypted_query_param') ?? ''
}

function client(id: number): Client {
  const flags = { stopped: false, isDefault: false, fallback: false, echoesCursor: false }
  return { id, name: `c${id}`, label: '', createdAt: 0, lastSeen: 0, passthrough: [], account: null, ...flags }
}
