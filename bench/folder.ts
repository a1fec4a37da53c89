import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endAll } from './processes.ts'

/** A folder for what a bench keeps; it goes with the process, and so do all that the bench has started. */
export function benchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-bench-'))
  process.on('exit', () => {
    endAll()
    rmSync(folder, { recursive: true, force: true })
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
  return folder
}

/** Ends the process with the bench, and says why when it failed. */
export function endWith(bench: Promise<unknown>): void {
  bench.then(() => process.exit(0), fail)
}

export function fail(error: unknown): never {
  console.error(error)
  process.exit(1)
}
