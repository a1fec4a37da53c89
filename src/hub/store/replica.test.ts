import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startPostgres, type TestPostgres } from '../../../test/support/servers/postgres.ts'
import { verifies } from '../../../test/support/verifies.ts'
import type { Claim } from '../../kit/lease.ts'
import { openPostgres, type Sql } from '../../kit/postgres/connect.ts'
import { createLeaseTable, postgresLease } from '../../kit/postgres/lease.ts'
import { createLogTables, type SharedLog, sharedLog } from '../../kit/postgres/shared-log.ts'
import { commitGroup } from '../../kit/sqlite/commit-group.ts'
import { connect } from '../../kit/sqlite/database.ts'
import { migrate } from '../../kit/sqlite/migrate.ts'
import type { OpenSqlite } from '../../kit/sqlite/open.ts'
import { batch, entryFor, NOW, positionOf, queueMessages, readAll, register, settleNow } from './fixtures.contract.ts'
import { type Call, operations } from './operations.ts'
import type { HubStore } from './port.ts'
import { openReplica, type Replica, replicaOn } from './replica.ts'
import { MIGRATIONS } from './schema.ts'
import { hubStoreContract } from './store.contract.ts'

const LIFE_MS = 60_000
let server: TestPostgres

beforeAll(async () => {
  server = await startPostgres({ fsync: false })
}, 60_000)
afterAll(() => server?.remove())

hubStoreContract('copies of one log in Postgres', async () => {
  const log = await openLog()
  // A new copy each time, built from the log alone; without a thread of its own, which takes as long as the test.
  const open = async () => leading(replicaOn(await database(), { log: log.log }), await log.claim())
  const store = await open()
  return {
    store,
    reopen: async () => {
      await store.close()
      return open()
    },
  }
})

describe('copies of one log', () => {
  verifies('nodes:store:same-contract', 'every copy is the same', async () => {
    const { log, claim } = await openLog()
    const first = await open(log)
    const store = await first.lead(await claim())
    const ada = await register(store, 'ada')
    await queueMessages(store, ada, 3)
    await settleNow(store, ada, { settledSeq: 1, sentSeq: 2 })
    await expect(register(store, 'ada')).rejects.toMatchObject({ code: 'name_taken' })

    const second = await open(log)
    await second.catchUp()
    const other = await second.lead(await claim())

    expect(other.hubId).toBe(store.hubId)
    expect(await readAll(other, ada)).toEqual(await readAll(store, ada))
    expect(await positionOf(other, ada)).toMatchObject({ lastSeq: 3, sentSeq: 2, settledSeq: 1 })
  })

  verifies(
    'nodes:lease:fenced',
    'who has lost the lease writes nothing more, and takes over what the next one wrote',
    async () => {
      const { log, claim } = await openLog()
      const first = await open(log)
      const store = await first.lead(await claim())
      await register(store, 'ada')
      const second = await open(log)
      const other = await second.lead(await claim())
      await register(other, 'bea')

      await expect(register(store, 'cleo')).rejects.toMatchObject({ code: 'lease_lost' })

      await first.catchUp()
      const again = await first.lead(await claim())
      expect((await again.clients.load()).clients.map(({ name }) => name)).toEqual(['ada', 'bea'])
      await expect(register(other, 'dora')).rejects.toMatchObject({ code: 'lease_lost' })
    },
  )

  verifies(
    'nodes:store:snapshots',
    'a new copy starts from the snapshot, and the log before the one before is gone',
    async () => {
      const { log, claim } = await openLog()
      const fence = await claim()
      const first = await openReplica({ dir: temporary(), log, snapshotAfterBytes: 0 })
      onTestFinished(() => first.close())
      const store = await first.lead(fence)
      const ada = await register(store, 'ada')
      const padding = 'x'.repeat(400_000)
      for (let round = 0; round < 2; round += 1) {
        await store.messages.ingest(batch([entryFor([ada], { raw: `{"padding":"${padding}"}` })]))
        expect(await first.snapshotIfDue(fence)).toBe(true)
      }
      await queueMessages(store, ada, 1)
      const { oldest, snapshot } = await log.bounds()
      expect(oldest).toBeGreaterThan(1)
      expect(snapshot).toBe(first.appliedSeq - 1)

      const second = await open(log)
      const other = await second.lead(await claim())

      expect(second.appliedSeq).toBe(first.appliedSeq)
      expect(await readAll(other, ada)).toHaveLength(3)
    },
  )

  test('a copy that fell behind the log says so', async () => {
    const { log, claim } = await openLog()
    const fence = await claim()
    const first = await openReplica({ dir: temporary(), log, snapshotAfterBytes: 0 })
    onTestFinished(() => first.close())
    const behind = await open(log)
    const store = await first.lead(fence)
    const ada = await register(store, 'ada')
    for (let round = 0; round < 2; round += 1) {
      await store.messages.ingest(batch([entryFor([ada], { raw: `{"padding":"${'x'.repeat(400_000)}"}` })]))
      await first.snapshotIfDue(fence)
    }
    await expect(behind.catchUp()).rejects.toMatchObject({ code: 'replica_behind' })
  })

  verifies(
    'nodes:store:database-restarts',
    'after the database was killed and came back, nothing is lost and nothing done twice',
    async () => {
      const own = await startPostgres()
      onTestFinished(() => own.remove())
      const { log, claim } = await openLog(own)
      const first = await open(log)
      const store = await first.lead(await claim())
      const ada = await register(store, 'ada')
      const told: string[] = []
      const keepOn = async () => {
        for (let index = 0; index < 200; index += 1) {
          const entry = entryFor([ada])
          for (;;) {
            const done = await store.messages.ingest(batch([entry], { now: NOW })).catch(() => null)
            if (done) break
            await new Promise((resolve) => setTimeout(resolve, 20))
          }
          told.push(entry.upstreamId ?? '')
        }
      }
      const writing = keepOn()
      while (told.length < 60) await new Promise((resolve) => setTimeout(resolve, 5))
      await own.stop()
      await own.start()
      await writing

      const queue = await readAll(store, ada)
      expect(told).toHaveLength(200)
      expect(queue.map(({ seq }) => seq)).toEqual(Array.from({ length: 200 }, (_, index) => index + 1))
    },
    60_000,
  )
})

async function database(): Promise<OpenSqlite<Call>> {
  const databasePath = join(temporary(), 'replica.db')
  const db = await connect(databasePath)
  migrate(db, databasePath, MIGRATIONS)
  return {
    db,
    databasePath,
    commit: async (calls) => commitGroup(db, calls, operations),
    close: async (drain) => {
      await drain()
      db.close()
    },
  }
}

async function leading(replica: Replica, claimed: Claim): Promise<HubStore> {
  const store = await replica.lead(claimed)
  let closed: Promise<void> | undefined
  return {
    ...store,
    close: () => {
      closed ??= store.close().then(() => replica.close())
      return closed
    },
  }
}

async function open(log: SharedLog): Promise<Replica> {
  const replica = await openReplica({ dir: temporary(), log })
  onTestFinished(() => replica.close())
  return replica
}

async function openLog(from: TestPostgres = server) {
  const sql: Sql = await openPostgres(await from.createDatabase())
  onTestFinished(() => sql.end({ timeout: 1 }))
  await createLeaseTable(sql)
  await createLogTables(sql)
  return { log: sharedLog(sql), claim }

  /** Takes the lease from whoever has it, as after its end. */
  async function claim(): Promise<Claim> {
    await sql`update switchboard_lease set expires_at = clock_timestamp()`
    const claimed = await postgresLease({ sql, address: '', lifeMs: LIFE_MS }).claim('hub')
    if (claimed === null) throw new Error('the lease is taken')
    return claimed
  }
}

function temporary(): string {
  const dir = mkdtempSync(join(tmpdir(), 'switchboard-replica-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}
