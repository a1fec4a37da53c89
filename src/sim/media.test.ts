import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createMediaStore, decrypt, encrypt } from './media.ts'

test('what is encrypted comes back byte for byte, and its size is as the protocol says', () => {
  const key = randomBytes(16)
  for (const size of [0, 1, 15, 16, 17, 1_000]) {
    const plain = randomBytes(size)
    const ciphertext = encrypt(plain, key)
    expect(ciphertext.length).toBe(Math.ceil((size + 1) / 16) * 16)
    expect(decrypt(ciphertext, key).equals(plain)).toBe(true)
  }
})

test('a key that does not fit is told', () => {
  expect(() => decrypt(randomBytes(15), randomBytes(16))).toThrow(/cannot be decrypted/)
  expect(() => decrypt(randomBytes(16), randomBytes(3))).toThrow(/cannot be decrypted/)
})

test('past its bound the store forgets the oldest file, never the newest', () => {
  const store = createMediaStore(40)
  const [first, second, third] = ['one', 'two', 'three'].map((text) => store.store(Buffer.from(text)).param)
  expect(() => store.download(first!)).toThrow(/no file/)
  expect(store.download(second!)).toHaveLength(16)
  expect(store.download(third!)).toHaveLength(16)
  const large = store.store(randomBytes(100)).param
  expect(store.download(large)).toHaveLength(112)
  expect(store.bytes).toBe(112)
})
