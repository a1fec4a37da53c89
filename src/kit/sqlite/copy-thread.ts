import { workerData } from 'node:worker_threads'
import { connect } from './database.ts'

// The thread that copies a database.
const { from, to }: { from: string; to: string } = workerData
const db = await connect(from, { timeout: 5_000 })
try {
  db.run('VACUUM INTO ?', to)
} finally {
  db.close()
}
