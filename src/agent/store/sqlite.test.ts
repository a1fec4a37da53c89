import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openInThread } from '../../kit/sqlite/in-thread.contract.ts'
import { newSession } from '../core-fixture.contract.ts'
import { operations } from './operations.ts'
import { MIGRATIONS } from './schema.ts'
import { openSqliteStore, sqliteStoreOn } from './sqlite.ts'
import { agentStoreContract } from './store.contract.ts'

const dirs: string[] = []

afterAll(async () => {
  for (const dir of dirs) await rm(dir, { recursive: true })
})

agentStoreContract('SQLite', async (limits) => {
  const dir = await mkdtemp(join(tmpdir(), 'switchboard-agent-store-'))
  dirs.push(dir)
  const open = async () => sqliteStoreOn(await openInThread(dir, MIGRATIONS, operations), limits)
  const store = await open()
  return {
    store,
    async reopen() {
      await store.close()
      return open()
    },
  }
})

test('written by its thread, a session is there when the directory is opened again', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'switchboard-agent-store-'))
  dirs.push(dir)
  const limits = { maxSessions: 10, maxLogEvents: 100, maxLogBytes: 100_000 }
  const store = await openSqliteStore({ dir, ...limits })
  await store.sessions.create(newSession('s1'), null)
  await expect(openSqliteStore({ dir, ...limits })).rejects.toMatchObject({ code: 'data_dir_in_use' })
  await store.close()
  const again = await openSqliteStore({ dir, ...limits })
  expect(await again.sessions.get('s1')).toMatchObject({ id: 's1' })
  await again.close()
})
