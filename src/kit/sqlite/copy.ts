import { once } from 'node:events'
import { startThread } from './writer.ts'

const THREAD = import.meta.url.endsWith('.ts')
  ? new URL('./copy-thread.ts', import.meta.url)
  : new URL('./copy-thread.js', import.meta.url)

/** Copies a database as of one moment, while others read and write it, on a thread of its own. `to` must not exist. */
export async function copyDatabase(from: string, to: string): Promise<void> {
  const worker = startThread(THREAD, { from, to })
  // An error of the thread is an 'error' event, and `once` rejects with it.
  await once(worker, 'exit')
}
