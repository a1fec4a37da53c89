import { expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { connect } from '../../kit/sqlite/database.ts'
import { migrate, userVersion } from '../../kit/sqlite/migrate.ts'
import { listMessages } from './read-messages.ts'
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
  db.exec(`PRAGMA user_version = ${MIGRATIONS.length + 1}`)

  expect(() => migrate(db, '/data/hub.db', MIGRATIONS)).toThrow(
    expect.objectContaining({ code: 'store_newer', message: expect.stringMatching(/hub\.db .*newer.*--data-dir/) }),
  )
  db.close()
})

test('tables of the first version go on: duplicates are known, users keep their messages, acknowledgements stand', async () => {
  const db = await connect(':memory:')
  migrate(db, 'hub.db', MIGRATIONS.slice(0, 1))
  const message = (id: number, user: string, account = 'bot') =>
    db.run(
      `INSERT INTO messages (id, account, upstream_id, fingerprint, user_id, user_key, received_at, state, reason, spec, raw)
       VALUES (?, ?, ?, ?, ?, ?, ?, 'routed', 'chosen', '{}', '{}')`,
      id,
      account,
      `up-${id}`,
      `print-${id}`,
      user,
      user.toLowerCase(),
      id,
    )
  for (const [id, user] of ['Ann', 'bert', 'ann', '', '', 'ANN'].entries()) message(id + 1, user)
  message(7, 'ann', 'other')
  db.run("INSERT INTO conversations (account, user_key, user_id, sends_used) VALUES ('bot', 'ann', 'Ann', 3)")
  migrate(db, 'hub.db', MIGRATIONS)

  const ids = (userId: string, limit = 9) => listMessages(db, { userId, limit }).map(({ id }) => id)
  expect(ids('ann')).toEqual([7, 6, 3, 1])
  expect(ids('ann', 2)).toEqual([7, 6])
  expect(ids('bert')).toEqual([2])
  expect(db.get("SELECT sends_used AS used FROM conversations WHERE user_key = 'ann' AND account = 'bot'")).toEqual({
    used: 3,
  })
  expect(() => message(8, 'ann')).not.toThrow()
  expect(() => db.run("UPDATE messages SET fingerprint = 'print-6' WHERE id = 8")).toThrow('UNIQUE')
  db.close()
})
