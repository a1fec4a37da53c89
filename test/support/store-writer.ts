// Run by the store's crash test: keeps messages as fast as it can and prints the id of each one once it is kept.
import { writeSync } from 'node:fs'
import { argv } from 'node:process'
import { batch, entryFor, register } from '../../src/hub/store/fixtures.contract.ts'
import { openSqliteStore } from '../../src/hub/store/sqlite.ts'

const store = await openSqliteStore({ dir: argv[2] ?? '' })
const client = await register(store, `writer of ${argv[3]}`)
await Promise.all(
  Array.from({ length: 4 }, async () => {
    for (;;) {
      const entries = Array.from({ length: 5 }, () => entryFor([client], { upstreamId: null }))
      await store.messages.ingest(batch(entries))
      writeSync(1, entries.map(({ spec }) => `${spec}\n`).join(''))
    }
  }),
)
