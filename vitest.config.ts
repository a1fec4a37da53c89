import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

/** Tests that need the S3 server, which takes a quarter of a minute to start. */
const WITH_S3 = ['src/**/*.s3.test.ts', 'test/scale/**/*.test.ts', 'test/support/servers/*.test.ts']

const BUNDLED = ['typebox', 'typebox/compile']

const shared = {
  pool: 'forks',
  testTimeout: 20_000,
  hookTimeout: 30_000,
  restoreMocks: true,
  // Hundreds of files, which every test file would load anew.
  deps: { optimizer: { ssr: { enabled: true, include: BUNDLED } } },
} as const

export default defineConfig({
  test: {
    // Much of the time a test waits for another process: one worker on two cores leaves most of them idle.
    maxWorkers: Math.max(3, availableParallelism()),
    projects: [
      {
        test: {
          ...shared,
          name: 'one machine',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...WITH_S3, 'node_modules/**'],
        },
      },
      {
        test: {
          ...shared,
          name: 'several machines',
          include: WITH_S3,
          globalSetup: 'test/support/servers/shared-s3.ts',
        },
      },
    ],
  },
})
