import { createCipheriv, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { type Announced, checkAnnounced, checkLength, MAX_PLAIN_BYTES, uploadCheck } from './upload-check.ts'

const key = randomBytes(16)
const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')

test('what is good passes to the byte, however it is cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 200 }),
      fc.array(fc.integer({ min: 1, max: 40 })),
      async (bytes, cuts) => {
        const plain = Buffer.from(bytes)
        const cipher = encrypt(plain)
        const passed = await pass(cut(cipher, cuts), announce(plain, { mediaType: 3 }))
        expect(passed.equals(cipher)).toBe(true)
      },
    ),
    { numRuns: 60 },
  )
})

verifies(
  'wire:media:checks',
  'a wrong length, key, size or start is refused before the last block is out',
  async () => {
    const plain = Buffer.concat([PNG, randomBytes(1_000)])
    const cipher = encrypt(plain)
    const good = announce(plain, { mediaType: 1 })
    await expect(pass([cipher], good)).resolves.toHaveLength(cipher.length)

    const wrong: [string, Buffer, Partial<Announced>][] = [
      ['multiple of 16', cipher.subarray(0, -1), { cipherBytes: null }],
      ['multiple of 16', Buffer.alloc(0), {}],
      ['has 1008 bytes', cipher.subarray(0, -16), {}],
      ['was told 1000', cipher, { plainBytes: 1_000 }],
      ['does not start like a known image', encrypt(Buffer.alloc(plain.length)), {}],
      ['does not start like a known video', cipher, { mediaType: 2 }],
      ['not encrypted with the aeskey', cipher, { keyHex: randomBytes(16).toString('hex'), mediaType: 3 }],
    ]
    for (const [problem, bytes, change] of wrong) {
      const seen: Buffer[] = []
      await expect(pass([bytes], { ...good, ...change }, seen)).rejects.toThrow(problem)
      expect(Buffer.concat(seen).length, problem).toBeLessThan(Math.max(1, bytes.length))
    }
  },
)

test('without a key, sizes or kind only the block length is looked at', async () => {
  const nothing = { cipherBytes: null, plainBytes: null, keyHex: null, mediaType: null }
  const bytes = randomBytes(160)
  expect((await pass(cut(bytes, [3, 5]), nothing)).equals(bytes)).toBe(true)
  await expect(pass([bytes.subarray(1)], nothing)).rejects.toThrow('multiple of 16')
})

verifies(
  'wire:media:limit',
  'a file that is too large is refused when it is announced, by its length, and while it comes',
  async () => {
    const nothing = { cipherBytes: null, plainBytes: null, keyHex: null, mediaType: null }
    expect(() => checkAnnounced({ ...nothing, plainBytes: MAX_PLAIN_BYTES })).not.toThrow()
    expect(() => checkAnnounced({ ...nothing, plainBytes: MAX_PLAIN_BYTES + 1 })).toThrow('100 MiB')
    expect(() => checkLength(MAX_PLAIN_BYTES + 16, nothing)).not.toThrow()
    expect(() => checkLength(MAX_PLAIN_BYTES + 32, nothing)).toThrow('100 MiB')
    const chunk = Buffer.alloc(1024 * 1024)
    const endless = Readable.from(
      (function* () {
        for (;;) yield chunk
      })(),
    )
    const check = uploadCheck(nothing)
    let passed = 0
    check.on('data', (bytes: Buffer) => (passed += bytes.length))
    const failed = new Promise<Error>((resolve) => check.once('error', resolve))
    endless.pipe(check)
    expect((await failed).message).toContain('100 MiB')
    endless.destroy()
    expect(passed).toBeLessThanOrEqual(MAX_PLAIN_BYTES + 16)
  },
)

test('announced sizes must fit together', () => {
  const said = (cipherBytes: number, plainBytes: number) => () =>
    checkAnnounced({ cipherBytes, plainBytes, keyHex: null, mediaType: null })
  expect(said(16, 15)).not.toThrow()
  expect(said(32, 16)).not.toThrow()
  expect(said(16, 16)).toThrow('filesize must be 32')
  expect(said(17, 16)).toThrow('multiple of 16')
  expect(said(0, 0)).toThrow('multiple of 16')
})

function announce(plain: Buffer, more: Partial<Announced>): Announced {
  const cipherBytes = encrypt(plain).length
  return { cipherBytes, plainBytes: plain.length, keyHex: key.toString('hex'), mediaType: null, ...more }
}

function encrypt(plain: Buffer): Buffer {
  const cipher = createCipheriv('aes-128-ecb', key, null)
  return Buffer.concat([cipher.update(plain), cipher.final()])
}

/** The bytes in pieces of these sizes, over and over. */
function cut(bytes: Buffer, sizes: number[]): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? bytes.length
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

async function pass(pieces: Buffer[], announced: Announced, seen: Buffer[] = []): Promise<Buffer> {
  const check = uploadCheck(announced)
  for (const piece of pieces) check.write(piece)
  check.end()
  for await (const bytes of check) seen.push(bytes)
  return Buffer.concat(seen)
}
