import { expect } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { httpServer } from '../../kit/http.ts'
import { jsonLog } from '../../kit/log.ts'
import { agentErrorAnswer } from './errors.ts'

verifies('agent:errors:unforeseen', async () => {
  const lines: string[] = []
  const log = jsonLog('error', { write: (line) => void lines.push(line) })
  const app = httpServer({ errorAnswer: agentErrorAnswer(log, () => {}), bodyLimitBytes: 1_000, parseJson: JSON.parse })
  app.get('/broken', async () => {
    throw new TypeError('a secret of the inside')
  })
  const { statusCode, body } = await app.inject('/broken')
  await app.close()
  const { error, request_id: requestId } = JSON.parse(body)
  expect([statusCode, error.code, error.details.reference]).toEqual([500, 'internal', requestId])
  expect(body).not.toContain('secret')
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ reference: requestId, method: 'GET', route: '/broken' })
  expect(lines[0]).toContain('a secret of the inside')
})
