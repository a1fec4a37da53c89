import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { openInThread } from '../../kit/sqlite/in-thread.contract.ts'
import { openMemoryStore } from './memory.ts'
import { operations } from './operations.ts'
import { MIGRATIONS } from './schema.ts'
import { sqliteStoreOn } from './sqlite.ts'
import { hubStoreContract } from './store.contract.ts'

const dirs: string[] = []

afterAll(async () => {
  for (const dir of dirs) await rm(dir, { recursive: true })
})

hubStoreContract('memory', async () => ({ store: await openMemoryStore() }))

hubStoreContract('SQLite', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'switchboard-store-'))
  dirs.push(dir)
  const open = async () => sqliteStoreOn(await openInThread(dir, MIGRATIONS, operations))
  const store = await open()
  return {
    store,
    async reopen() {
      await store.close()
      return open()
    },
  }
})
