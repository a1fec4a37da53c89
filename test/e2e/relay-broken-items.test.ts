import { expect } from 'vitest'
import { onlineClient, relayCall } from '../support/relay-calls.ts'
import { startTestHub } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const BROKEN: [item: object, field: string][] = [
  [{ type: 1, text_item: { text: 5 } }, 'msg.item_list.1.text_item.text'],
  [{ type: 1, text_item: null }, 'msg.item_list.1.text_item'],
  [{ type: 1, text_item: {} }, 'msg.item_list.1.text_item.text'],
  [{ type: 1 }, 'msg.item_list.1.text_item.text'],
  [{ type: '1', text_item: { text: 'x' } }, 'msg.item_list.1.type'],
  [{ text_item: { text: 'x' } }, 'msg.item_list.1.type'],
]

verifies('relay:errors:broken-items', async () => {
  const hub = await startTestHub()
  const clumsy = await onlineClient(hub, 'clumsy')
  const other = await onlineClient(hub, 'other')
  await hub.say('ann', '@clumsy hello')
  await hub.say('ben', '@other hello')
  const [hers] = (await hub.poll(clumsy)).body.messages
  const [his] = (await hub.poll(other)).body.messages
  const good = { type: 1, text_item: { text: 'before it' } }
  for (const [item, field] of BROKEN) {
    const msg = { context_token: hers.context_token, item_list: [good, item] }
    const refused = await relayCall(hub, clumsy, 'sendmessage', { msg })
    expect(refused.body, JSON.stringify(item)).toMatchObject({ ret: 400, errcode: 400, field })
    const sent = await relayCall(hub, other, 'sendmessage', { context_token: his.context_token, content: 'hi' })
    expect(sent.status, JSON.stringify(item)).toBe(200)
  }
  const { messages } = await hub.sim.control.conversation({ user: 'ann' })
  expect(messages.filter(({ from }) => from === 'bot')).toEqual([])
})

verifies('relay:errors:broken-items', 'an empty caption beside something else is left out', async () => {
  const hub = await startTestHub()
  const token = await onlineClient(hub, 'bot')
  await hub.say('ann', 'hello')
  const [{ context_token }] = (await hub.poll(token)).body.messages
  const item_list = [
    { type: 1, text_item: { text: '' } },
    { type: 1, text_item: { text: 'the rest' } },
  ]
  expect((await relayCall(hub, token, 'sendmessage', { msg: { context_token, item_list } })).status).toBe(200)
  const { messages } = await hub.sim.control.conversation({ user: 'ann' })
  expect(messages.filter(({ from }) => from === 'bot').map(({ text }) => text)).toEqual(['the rest'])
})
