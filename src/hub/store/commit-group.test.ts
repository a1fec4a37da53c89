import { expect, test } from 'vitest'
import { commitGroup } from './commit-group.ts'
import { connect, type Db } from './database.ts'
import { batch, entryFor, NOW } from './fixtures.contract.ts'
import type { Call } from './operations.ts'
import { readDeliveries, readPositions } from './read-deliveries.ts'
import { migrate } from './schema.ts'

const create = (name: string): Call => ({
  name: 'createClient',
  input: { name, label: name, fallback: false, tokenHash: name, now: NOW },
})
const keep = (): Call => ({ name: 'ingest', input: batch([entryFor([{ id: 1 }])]) })

/** A database whose statement `failing` fails for as long as it is set. */
async function setUp(): Promise<{ db: Db; fault: { failing?: string } }> {
  const inner = await connect(':memory:')
  migrate(inner, ':memory:')
  const fault: { failing?: string } = {}
  const db: Db = {
    ...inner,
    run(sql, ...values) {
      if (sql === fault.failing) throw new Error('disk I/O error')
      return inner.run(sql, ...values)
    },
  }
  return { db, fault }
}

for (const statement of ['BEGIN IMMEDIATE', 'COMMIT', 'RELEASE operation']) {
  test(`when ${statement} fails nothing of the group is kept, and the next group is`, async () => {
    const { db, fault } = await setUp()
    commitGroup(db, [create('ada'), keep()])

    fault.failing = statement
    expect(() => commitGroup(db, [keep(), create('bob')])).toThrow(
      expect.objectContaining({ name: 'AppError', code: 'store_failed', message: expect.stringContaining('disk') }),
    )
    delete fault.failing
    expect(commitGroup(db, [create('bob'), keep()])).toMatchObject([{ ok: true }, { ok: true }])

    expect(readPositions(db)).toMatchObject([{ lastSeq: 2 }, { lastSeq: 0 }])
    expect(readDeliveries(db, 1, 0, 9, 0).map(({ seq }) => seq)).toEqual([1, 2])
    db.close()
  })
}

test('the code, text and details of a refusal are kept', async () => {
  const { db } = await setUp()
  const [, refused] = commitGroup(db, [create('ada'), create('ADA')])

  expect(refused).toMatchObject({ ok: false, error: { code: 'name_taken', message: expect.stringContaining('"ADA"') } })
  db.close()
})
