import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { parseCommand } from './commands.ts'
import { clienteleOf, type RoutableClient, type RoutingView, route } from './router.ts'

const zoe: RoutableClient = { id: 1, name: 'zoe', online: true, isDefault: false, fallback: false, passthrough: [] }
const ann: RoutableClient = { ...zoe, id: 2, name: 'Ann', online: false }
const bob: RoutableClient = { ...zoe, id: 3, name: 'bob' }
const clients = [zoe, ann, bob]

type View = Omit<RoutingView, 'clients'> & { clients: RoutableClient[] }

function say(text: string, more: Partial<View> = {}) {
  const usual = { clients, chosenId: null, quotedId: null, prefix: '/', linkText: 'The line is fine.' }
  const view = { ...usual, ...more }
  return route(text, { ...view, clients: clienteleOf(view.clients) })
}

function reply(text: string, more: Partial<View> = {}): string {
  const { notices } = say(text, more)
  expect(notices).toHaveLength(1)
  // An answer to a command is given as often as it is asked for.
  expect(notices[0]?.onceMs).toBe(0)
  return notices[0]?.text ?? ''
}

verifies('routing:commands:list', () => {
  expect(reply('/list', { chosenId: bob.id }).split('\n').slice(0, 3)).toEqual([
    '1. Ann (offline)',
    '2. bob (online) ← you talk to this one',
    '3. zoe (online)',
  ])
  expect(reply('/list', { clients: [] })).toContain('Nobody')
})

verifies('routing:commands:use-name', () => {
  const routing = say('/use ann')
  expect(routing).toMatchObject({ state: 'command', reason: 'command:use', targets: [], choose: ann.id })
  expect(routing.notices[0]?.text).toMatch(/You now talk to Ann\..*offline/)
  expect(say('/use  BOB \n')).toMatchObject({ choose: bob.id })
})

verifies('routing:commands:use-number', () => {
  const numbers = reply('/list').split('\n')
  for (const one of clients) {
    const number = numbers.find((line) => line.includes(one.name))?.split('.')[0]
    expect(say(`/use ${number}`), one.name).toMatchObject({ choose: one.id })
  }
})

verifies('routing:names:beats-number', () => {
  const two = { ...zoe, id: 9, name: '2' }
  // In the list "2" stands first, so by its number the second would be Ann.
  const all = [...clients, two]
  expect(reply('/list', { clients: all })).toContain('2. Ann')
  expect(say('/use 2', { clients: all })).toMatchObject({ choose: two.id })
  expect(say('/use 3', { clients: all })).toMatchObject({ choose: bob.id })
})

verifies('routing:commands:use-unknown', () => {
  for (const wanted of ['nobody', '0', '4', '-1', '1.5', '9'.repeat(400), 'toString', ']']) {
    const routing = say(`/use ${wanted}`, { chosenId: bob.id })
    expect(routing, wanted).not.toHaveProperty('choose')
    expect(routing.notices[0]?.text).toContain('There is no')
    expect(routing.notices[0]?.text.length).toBeLessThan(200)
  }
  const empty = say('/use')
  expect(empty).not.toHaveProperty('choose')
  expect(empty.notices[0]?.text).toContain('/use <name or number>')
})

verifies('routing:commands:status', () => {
  expect(reply('/status', { chosenId: ann.id })).toBe('You talk to Ann (offline): you chose it. The line is fine.')
  expect(reply('/status', { chosenId: bob.id })).toBe('You talk to bob (online): you chose it. The line is fine.')
  expect(reply('/status')).toContain('You talk to zoe (online)')
  expect(reply('/status', { clients: [] })).toContain('nobody')
})

test('a command that quotes an answer still tells whom the user talks to', () => {
  expect(reply('/status', { chosenId: ann.id, quotedId: bob.id })).toContain('You talk to Ann')
  expect(reply('/list', { chosenId: ann.id, quotedId: bob.id })).toContain('1. Ann (offline) ← you talk to this one')
})

verifies('routing:commands:help', () => {
  const text = reply('/help')
  for (const part of ['/list', '/use <name or number>', '/status', '/broadcast <text>', '@name', 'Quote', '//'])
    expect(text).toContain(part)
})

verifies('routing:commands:broadcast', () => {
  const routing = say('/broadcast  to all\nof you ')
  expect(routing).toMatchObject({ state: 'routed', reason: 'broadcast', targets: [1, 2, 3], text: 'to all\nof you' })
  expect(routing).not.toHaveProperty('choose')
  expect(routing.notices.map(({ text }) => text)).toEqual([
    'Sent to all 3 clients. Offline now, and given it later: 1.',
  ])
  expect(say('/broadcast   ')).toMatchObject({ state: 'command', targets: [] })
  expect(say('/broadcast hi', { clients: [] })).toMatchObject({ state: 'command', targets: [] })
})

verifies('routing:commands:prefix', () => {
  expect(say('!list', { prefix: '!' })).toMatchObject({ reason: 'command:list' })
  expect(reply('!help', { prefix: '!' })).toContain('!use <name or number>')
  expect(reply('!help', { prefix: '!' })).not.toContain('/')
  expect(say('/list', { prefix: '!' })).toMatchObject({ state: 'routed', reason: 'first_online' })
  expect(say('##list', { prefix: '##' })).toMatchObject({ reason: 'command:list' })
  expect(say('#list', { prefix: '##' })).toMatchObject({ state: 'routed' })
  // The escape is the prefix twice, whatever it is.
  expect(say('!!list', { prefix: '!' })).toMatchObject({ state: 'routed', text: '!list' })
})

verifies('routing:commands:passthrough', () => {
  const claiming = { ...bob, passthrough: ['status', 'help'] }
  const all = [zoe, ann, claiming]
  const claimed = say('/status now', { clients: all, chosenId: bob.id })
  expect(claimed).toMatchObject({ state: 'routed', reason: 'passthrough:status', targets: [bob.id] })
  expect(claimed).not.toHaveProperty('text')
  expect(say('/STATUS', { clients: all, chosenId: bob.id })).toMatchObject({ reason: 'passthrough:status' })
  // Only for users who talk to it, and only what it claimed.
  expect(say('/status', { clients: all, chosenId: zoe.id })).toMatchObject({ reason: 'command:status' })
  expect(say('/list', { clients: all, chosenId: bob.id })).toMatchObject({ reason: 'command:list' })
  expect(say('/help', { clients: all, quotedId: bob.id })).toMatchObject({ reason: 'passthrough:help' })
})

verifies('routing:commands:escape', () => {
  const routing = say('//list of things', { chosenId: bob.id })
  expect(routing).toMatchObject({ state: 'routed', reason: 'chosen', targets: [bob.id], text: '/list of things' })
  expect(say('///x').text).toBe('//x')
  expect(say('//').text).toBe('/')
})

verifies('routing:commands:unknown', () => {
  for (const text of ['/new', '/model gpt', '/', '/ list', '/list.', '/lists', '/use-me', '/你好', '/2']) {
    const routing = say(text, { chosenId: bob.id })
    expect(routing, text).toMatchObject({ state: 'routed', reason: 'chosen', targets: [bob.id], notices: [] })
    expect(routing, text).not.toHaveProperty('text')
  }
})

test('a command is its name in any case and whatever follows a space', () => {
  expect(parseCommand('/Use  My Bot ', '/')).toEqual({ name: 'use', argument: 'My Bot' })
  expect(parseCommand('/broadcast\nline\n\nline', '/')).toEqual({ name: 'broadcast', argument: 'line\n\nline' })
  expect(parseCommand('/list\n', '/')).toEqual({ name: 'list', argument: '' })
  expect(parseCommand(' /list', '/')).toBeNull()
})
