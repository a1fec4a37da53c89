import { serveWriter } from '../../kit/sqlite/serve-writer.ts'
import { operations } from './operations.ts'
import { MIGRATIONS } from './schema.ts'

// The thread that writes.
await serveWriter(operations, MIGRATIONS)
