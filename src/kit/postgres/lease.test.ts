import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startPostgres, type TestPostgres } from '../../../test/support/servers/postgres.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { leaseContract } from '../lease.contract.ts'
import { checkListen, openPostgres } from './connect.ts'
import { createLeaseTable, postgresLease } from './lease.ts'

const LIFE_MS = 400
let server: TestPostgres

beforeAll(async () => {
  server = await startPostgres({ fsync: false })
}, 60_000)
afterAll(() => server?.remove())

leaseContract('Postgres', async () => {
  const sql = await openPostgres(await server.createDatabase())
  onTestFinished(() => sql.end({ timeout: 1 }))
  await createLeaseTable(sql)
  const open = (address: string) => postgresLease({ sql, address, lifeMs: LIFE_MS })
  return { one: open('one'), other: open('other'), runOut: () => pause(2 * LIFE_MS) }
})

test('a lease says where its holder can be reached', async () => {
  const sql = await openPostgres(await server.createDatabase())
  onTestFinished(() => sql.end({ timeout: 1 }))
  await createLeaseTable(sql)
  const lease = postgresLease({ sql, address: 'http://one', lifeMs: 60_000 })
  expect(await lease.holder('a')).toBeNull()
  const claim = await lease.claim('a')
  expect(await lease.holder('a')).toEqual({ address: 'http://one', generation: claim?.generation })
  if (claim) await lease.release(claim)
  expect(await lease.holder('a')).toBeNull()
})

verifies('nodes:start:listen-works', 'notifications are checked', async () => {
  const sql = await openPostgres(server.url)
  onTestFinished(() => sql.end({ timeout: 1 }))
  await expect(checkListen(sql)).resolves.toBeUndefined()
  // What a pooler in transaction mode does: everything works, and nothing is ever heard.
  const unlisten = async () => {}
  const deaf = { listen: async () => ({ unlisten }), notify: sql.notify }
  await expect(checkListen(deaf, 50)).rejects.toMatchObject({ code: 'database_without_listen' })
})

verifies('nodes:start:database-there', async () => {
  const failure = await openPostgres('postgres://somebody:secret@127.0.0.1:1/hub').catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'database_unreachable' })
  expect(String(failure)).toContain('127.0.0.1:1/hub')
  expect(String(failure)).not.toContain('secret')
})
