import { expect, vi } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { httpServer } from '../../kit/http.ts'
import { silentLog } from '../../kit/log.ts'
import { apiAuth } from './auth.ts'
import { agentErrorAnswer } from './errors.ts'

const compared: [number, number][] = []

vi.mock('node:crypto', async (importOriginal) => {
  const real = await importOriginal<typeof import('node:crypto')>()
  return {
    ...real,
    timingSafeEqual(a: Buffer, b: Buffer) {
      compared.push([a.length, b.length])
      return real.timingSafeEqual(a, b)
    },
  }
})

verifies('agent:auth:constant-time', async () => {
  const auth = apiAuth({
    keys: ['first', 'second', 'a much longer third key'],
    insecure: false,
    allowedHosts: [],
    allowedOrigins: [],
  })
  const app = httpServer({
    errorAnswer: agentErrorAnswer(silentLog, () => {}),
    bodyLimitBytes: 1_000,
    parseJson: JSON.parse,
  })
  app.get('/', async (request) => auth(request))
  for (const [key, status] of [
    ['first', 200],
    ['a much longer third key', 200],
    ['wrong', 401],
    ['firs', 401],
  ] as const) {
    compared.length = 0
    const answer = await app.inject({ url: '/', headers: { 'x-api-key': key } })
    expect(answer.statusCode, key).toBe(status)
    expect(answer.body).not.toContain(key)
    // Every key, whether one before it matched or not, as digests of one length.
    expect(compared, key).toEqual([
      [32, 32],
      [32, 32],
      [32, 32],
    ])
  }
  await app.close()
})
