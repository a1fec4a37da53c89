import { expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { connect } from '../../kit/sqlite/database.ts'
import { migrate, userVersion } from '../../kit/sqlite/migrate.ts'
import { MIGRATIONS, readHubId } from './schema.ts'

verifies(
  'store:schema:versioned',
  'an empty database is brought to the newest version, once, and an old one keeps what it has',
  async () => {
    const db = await connect(':memory:')
    expect(userVersion(db)).toBe(0)
    migrate(db, 'hub.db', MIGRATIONS)
    const [version, hubId] = [userVersion(db), readHubId(db)]
    const tables = db.all('SELECT name, sql FROM sqlite_schema ORDER BY name')
    db.exec("INSERT INTO meta VALUES ('kept', 'yes')")
    migrate(db, 'hub.db', MIGRATIONS)

    expect(db.get("SELECT value FROM meta WHERE key = 'kept'")).toEqual({ value: 'yes' })
    expect(version).toBeGreaterThan(0)
    expect([userVersion(db), readHubId(db)]).toEqual([version, hubId])
    expect(db.all('SELECT name, sql FROM sqlite_schema ORDER BY name')).toEqual(tables)
    db.close()
  },
)

test('a step that fails leaves nothing, and can be taken again', async () => {
  const db = await connect(':memory:')
  db.exec('CREATE TABLE tokens (in_the_way TEXT)')
  expect(() => migrate(db, 'hub.db', MIGRATIONS)).toThrow('tokens')
  expect(userVersion(db)).toBe(0)
  db.exec('DROP TABLE tokens')
  migrate(db, 'hub.db', MIGRATIONS)

  expect(readHubId(db)).toMatch(/^[0-9a-f]{8}$/)
  db.close()
})

test('a database of a newer version is refused with what to do', async () => {
  const db = await connect(':memory:')
  db.exec('PRAGMA user_version = 2')

  expect(() => migrate(db, '/data/hub.db', MIGRATIONS)).toThrow(
    expect.objectContaining({ code: 'store_newer', message: expect.stringMatching(/hub\.db .*newer.*--data-dir/) }),
  )
  db.close()
})
