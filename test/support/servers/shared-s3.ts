import type { TestProject } from 'vitest/node'
import { startS3, type TestS3 } from './s3.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The S3 server of this run of the tests. */
    s3: Omit<TestS3, 'remove'>
  }
}

/** Starts one S3 server for all tests that need it, before the first of them; vitest calls it only when one of them runs. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { remove, ...server } = await startS3()
  project.provide('s3', server)
  return remove
}
