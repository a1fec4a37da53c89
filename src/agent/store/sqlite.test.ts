import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { openSqliteStore } from './sqlite.ts'
import { agentStoreContract } from './store.contract.ts'

const dirs: string[] = []

afterAll(async () => {
  for (const dir of dirs) await rm(dir, { recursive: true })
})

agentStoreContract('SQLite', async (limits) => {
  const dir = await mkdtemp(join(tmpdir(), 'switchboard-agent-store-'))
  dirs.push(dir)
  const store = await openSqliteStore({ dir, ...limits })
  return {
    store,
    async reopen() {
      await store.close()
      return openSqliteStore({ dir, ...limits })
    },
  }
})
