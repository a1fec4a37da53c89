import { expect, test } from 'vitest'
import { createBots } from './bots.ts'

test('the id of a bot is the one in its token, else the same after every start', () => {
  expect(createBots('0123456789ab@im.bot:x').get().id).toBe('0123456789ab@im.bot')
  expect(createBots('plain').get().id).toMatch(/^[0-9a-f]{12}@im\.bot$/)
  expect(createBots('plain').get().id).toBe(createBots('plain').get().id)
})

test('a new token takes the place of the old one', () => {
  const bots = createBots('old-token')
  const { bot, token } = bots.renew()
  expect(bots.byToken('old-token')).toBeUndefined()
  expect(bots.byToken(token)).toBe(bot)
})

test('bots are found by name and by id, a new one has an inbox of its own, and none is made twice', () => {
  const bots = createBots('token-one')
  const { bot } = bots.add('second', 'token-two')
  expect(bots.get('second')).toBe(bot)
  expect(bots.get(bot.id)).toBe(bot)
  expect(bot.inbox).not.toBe(bots.get().inbox)
  expect(() => bots.add('second')).toThrow(/already/)
  expect(() => bots.add('third', 'token-two')).toThrow(/already/)
  expect(() => bots.get('nobody')).toThrow(/There is no bot nobody/)
})
