import { existsSync, mkdirSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/support/processes.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { resolveWorkspace } from './resolve-workspace.ts'

function folders() {
  const base = realpathSync(temporaryFolder())
  const root = join(base, 'root')
  const outside = join(base, 'outside')
  mkdirSync(root)
  mkdirSync(outside)
  return { root, outside }
}

verifies('agent:workspace:root', 'without a wish it is the root itself', async () => {
  const { root } = folders()
  for (const wish of [null, undefined, '', '.', root]) expect(await resolveWorkspace(root, wish)).toBe(root)
})

verifies('agent:workspace:inside', 'relative paths start at the root, and what is not there is made', async () => {
  const { root } = folders()
  expect(await resolveWorkspace(root, 'a/b')).toBe(join(root, 'a/b'))
  expect(existsSync(join(root, 'a/b'))).toBe(true)
  expect(await resolveWorkspace(root, join(root, 'c'))).toBe(join(root, 'c'))
})

verifies('agent:workspace:too-long', async () => {
  const { root } = folders()
  const name = 'x'.repeat(300)
  for (const wish of [name, `a/${name}`, `${name}/a`, join(root, name)])
    await expect(resolveWorkspace(root, wish)).rejects.toMatchObject({
      code: 'bad_request',
      message: expect.stringContaining('too long'),
      details: { field: 'workspace' },
    })
  expect(readdirSync(root)).toEqual([])
})

test('real paths are compared: a link inside counts as what it leads to, and another way to the root is the root', async () => {
  const { root, outside } = folders()
  mkdirSync(join(root, 'real'))
  symlinkSync('real', join(root, 'link'))
  symlinkSync(root, join(outside, 'way'))
  expect(await resolveWorkspace(root, 'link/new')).toBe(join(root, 'real/new'))
  expect(await resolveWorkspace(root, join(outside, 'way/new'))).toBe(join(root, 'new'))
})

verifies('agent:workspace:escape', 'what leads out is refused, and nothing is made there', async () => {
  const { root, outside } = folders()
  symlinkSync(outside, join(root, 'link'))
  symlinkSync(join(outside, 'gone'), join(root, 'dangling'))
  const wishes = [
    '..',
    '../outside',
    '../outside/new',
    outside,
    '/',
    'link',
    'link/new',
    'dangling',
    'dangling/new',
    'a\0b',
  ]
  for (const wish of wishes)
    await expect(resolveWorkspace(root, wish)).rejects.toMatchObject({ code: 'workspace_outside' })
  expect(readdirSync(outside)).toEqual([])
})

verifies('agent:workspace:own-data', "the server's own folders are refused, a file as well", async () => {
  const { root } = folders()
  mkdirSync(join(root, '.data'))
  writeFileSync(join(root, 'file'), '')
  const hidden = [join(root, '.data')]
  for (const wish of ['.data', '.data/new'])
    await expect(resolveWorkspace(root, wish, hidden)).rejects.toMatchObject({ code: 'workspace_outside' })
  await expect(resolveWorkspace(root, 'file', hidden)).rejects.toMatchObject({ code: 'workspace_not_a_folder' })
  await expect(resolveWorkspace(root, 'file/below', hidden)).rejects.toMatchObject({ code: 'workspace_outside' })
  expect(readdirSync(join(root, '.data'))).toEqual([])
})
