import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/support/processes.ts'
import { mediaKey } from './media-key.ts'

test('the key is made once, kept, and private', async () => {
  const folder = temporaryFolder()
  const key = await mediaKey(folder)
  expect(key).toHaveLength(32)
  expect((await mediaKey(folder)).equals(key)).toBe(true)
  expect(statSync(join(folder, 'media.key')).mode & 0o777).toBe(0o600)
})

test('one that is damaged, or cannot be made, is told with what to do', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'media.key'), 'x')
  await expect(mediaKey(folder)).rejects.toMatchObject({
    code: 'data_dir_unusable',
    message: expect.stringContaining('delete it'),
  })
  await expect(mediaKey(join(folder, 'nowhere'))).rejects.toMatchObject({ code: 'data_dir_unusable' })
})
