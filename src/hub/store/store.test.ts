import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { openMemoryStore } from './memory.ts'
import { openSqliteStore } from './sqlite.ts'
import { hubStoreContract } from './store.contract.ts'

const dirs: string[] = []

afterAll(async () => {
  for (const dir of dirs) await rm(dir, { recursive: true })
})

hubStoreContract('memory', async () => ({ store: await openMemoryStore() }))

hubStoreContract('SQLite', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'switchboard-store-'))
  dirs.push(dir)
  const store = await openSqliteStore({ dir })
  return {
    store,
    async reopen() {
      await store.close()
      return openSqliteStore({ dir })
    },
  }
})
