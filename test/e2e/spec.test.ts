import { expect } from 'vitest'
import { startTestHub } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

verifies(['relay:getupdates:waits', 'relay:getupdates:delivers', 'relay:message:five-fields'], async () => {
  const hub = await startTestHub({ holdMs: 5_000 })
  const token = await hub.register('bot')
  const poll = hub.poll(token)
  await hub.say('ann', 'hello')
  const { status, body } = await poll
  expect(status).toBe(200)
  expect(body.errcode).toBe(0)
  expect(body.messages).toHaveLength(1)
  expect(Object.keys(body.messages[0]).sort()).toEqual([
    'content',
    'context_token',
    'from_user',
    'msg_type',
    'timestamp',
  ])
  expect(body.messages[0]).toMatchObject({ content: 'hello', from_user: 'ann@im.wechat', msg_type: 'text' })
})
