import type { Page } from 'playwright-core'
import { expect, test, vi } from 'vitest'
import { testBrowser } from '../support/browser.ts'
import { lookAgain, openPanel, registerOnPage, shownToken } from '../support/panel.ts'
import { startTestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

// A browser takes its time on a busy machine.
vi.setConfig({ testTimeout: 90_000 })

const openPage = testBrowser()

const row = (page: Page, name: string) => page.getByRole('row').filter({ has: page.getByText(name, { exact: true }) })

verifies(['hub:ui:page', 'web:panel:live'], async () => {
  const hub = await startTestHub()
  const { headers, status } = await hub.call('GET', '/hub/ui')
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  const { page, problems } = await openPanel(hub, openPage)
  await page.getByText('No client is registered yet').waitFor()
  expect(await page.getByRole('table').count()).toBe(0)

  // It follows what happens.
  const token = await hub.register('helper', { label: 'Helps' })
  await lookAgain(page)
  await row(page, 'helper').getByText('offline').waitFor()
  await hub.register('other')
  await hub.say('ann', 'one')
  await hub.say('ann', 'two')
  await hub.call('POST', '/relay/bot/getconfig', { token })
  await lookAgain(page)
  await page.getByText('1 of 2 online').waitFor()
  await row(page, 'helper').getByText('online', { exact: true }).waitFor()
  expect(await row(page, 'helper').getByRole('cell').allTextContents()).toEqual(
    expect.arrayContaining([expect.stringContaining('Helps'), '2']),
  )
  await row(page, 'helper').getByRole('img', { name: '2 received, 0 sent in the last 30 minutes' }).waitFor()
  await hub.call('DELETE', '/hub/clients/helper')
  await lookAgain(page)
  await page.getByText('0 of 1 online').waitFor()
  expect(await row(page, 'helper').count()).toBe(0)
  expect(problems).toEqual([])

  const first = await hub.call('GET', '/hub/overview')
  const tag = String(first.headers.get('etag'))
  expect((await hub.call('GET', '/hub/overview', { headers: { 'if-none-match': tag } })).status).toBe(304)
  await hub.register('third')
  expect((await hub.call('GET', '/hub/overview', { headers: { 'if-none-match': tag } })).status).toBe(200)
})

verifies('web:panel:line', async () => {
  const hub = await startTestHub()
  const { page } = await openPanel(hub, openPage)
  expect(await page.getByRole('region', { name: 'Messaging service' }).count()).toBe(0)
  hub.sim.control.faults.add({ kind: 'down' })
  await until(() => !hub.hub.link.isUp())
  await lookAgain(page)
  const notice = page.getByRole('region', { name: 'Messaging service' })
  await notice.getByText('Reconnecting:').waitFor()
  await notice.getByText('there is nothing you have to do').waitFor()
  hub.sim.control.faults.clear()
  hub.sim.control.faults.add({ kind: 'expired' })
  await until(() => hub.hub.link.view().state === 'needs_login')
  await lookAgain(page)
  await notice.getByText('Login needed:').waitFor()
  hub.sim.control.faults.clear()
  await until(() => hub.hub.link.isUp())
  await lookAgain(page)
  await page.getByText('Connected', { exact: true }).waitFor()
  expect(await notice.count()).toBe(0)
})

test('a hub that went away is told, and found again', async () => {
  const hub = await startTestHub()
  const { page } = await openPanel(hub, openPage)
  await page.context().setOffline(true)
  await lookAgain(page)
  await page.getByText('The hub does not answer').waitFor()
  await page.context().setOffline(false)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('Connected', { exact: true }).waitFor()
})

verifies(['hub:ui:register', 'web:panel:clients'], async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const { page, problems } = await openPanel(hub, openPage)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await registerOnPage(page, ' helper ', 'Helps')
  const token = await shownToken(page)
  expect(token).toMatch(/^vhub_[0-9a-f]{32}$/)
  const dialog = page.getByRole('dialog')
  await dialog.getByText('shown this once').waitFor()
  await dialog.getByText(`RELAY_URL=${hub.url}`).waitFor()
  expect((await hub.poll(token)).status).toBe(200)
  await dialog.getByText('JSON').click()
  await dialog.getByRole('button', { name: 'Copy: the configuration' }).click()
  expect(JSON.parse(String(await page.evaluate('navigator.clipboard.readText()')))).toEqual({
    base_url: hub.url,
    token,
  })
  await dialog.getByRole('button', { name: 'I have kept it' }).click()
  await row(page, 'helper').getByText('Helps').waitFor()
  expect(await page.content()).not.toContain('vhub_')

  // Default, fallback.
  await page.getByRole('button', { name: 'Manage helper' }).click()
  await dialog.getByLabel('Default').check()
  await until(async () => (await hub.call('GET', '/hub/default')).body.name === 'helper')
  await dialog.getByLabel('Fallback').check()
  await until(async () => (await hub.call('GET', '/hub/clients/helper')).body.fallback)

  // Rotate: the old token is worth nothing, the new one works.
  await dialog.getByRole('button', { name: 'Rotate token…' }).click()
  await dialog.getByRole('button', { name: 'Not at all' }).click()
  await dialog.getByRole('heading', { name: 'The token of helper' }).waitFor()
  const next = await shownToken(page)
  expect((await hub.poll(next)).status).toBe(200)
  expect((await hub.poll(token)).status).toBe(401)
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })

  // Delete.
  await hub.say('ann', 'waits')
  await lookAgain(page)
  await page.getByRole('button', { name: 'Manage helper' }).click()
  await dialog.getByRole('button', { name: 'Delete…' }).click()
  await dialog.getByText('1 waiting message will be kept as dead letters').waitFor()
  await dialog.getByRole('button', { name: 'Delete helper' }).click()
  await page.getByText('No client is registered yet').waitFor()
  expect(problems).toEqual([])
  expect(
    await page.evaluate('JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])'),
  ).not.toContain('vhub_')
})

test('a name that is taken is told in the form, which keeps what was written; pressing twice registers once', async () => {
  const hub = await startTestHub()
  await hub.register('helper')
  const { page } = await openPanel(hub, openPage)
  await registerOnPage(page, 'HELPER')
  const form = page.getByRole('dialog')
  await form.getByRole('alert').getByText('A client named "HELPER" is registered already').waitFor()
  expect(await form.getByLabel('Name').inputValue()).toBe('HELPER')
  expect(await form.getByLabel('Name').getAttribute('aria-invalid')).toBe('true')
  await form.getByLabel('Name').fill('second')
  await form.getByRole('button', { name: 'Register' }).dblclick()
  expect(await shownToken(page)).toMatch(/^vhub_/)
  expect((await hub.call('GET', '/hub/clients')).body.total).toBe(2)
})

verifies('web:panel:messages', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await hub.register('helper')
  await hub.say('ann', 'list files')
  await hub.poll(token)
  await hub.say('bob', '/list')
  const { page, problems } = await openPanel(hub, openPage, { part: 'messages' })
  const entries = page.getByRole('list', { name: 'Messages, newest first' }).locator(':scope > li')
  await entries.nth(1).waitFor()
  await entries.nth(0).getByText('The command list: the hub answered it itself.').waitFor()
  const of = entries.nth(1)
  await of.getByText('list files').waitFor()
  await of.getByText('Nobody is online, so the client registered first keeps it.').waitFor()
  await of.getByText('handed out').waitFor()
  await hub.poll(token)
  await lookAgain(page)
  await of.getByText('received').waitFor()
  await of.getByRole('button', { name: 'Deliver again: message 1 to helper' }).click()
  await of.getByText('waiting').waitFor()

  await of.getByRole('link', { name: 'ann@im.wechat' }).click()
  await page.getByRole('heading', { name: 'Messages of ann@im.wechat' }).waitFor()
  await until(async () => (await entries.count()) === 1)
  await page.getByRole('link', { name: 'Conversations' }).click()
  const ann = row(page, 'ann@im.wechat')
  await ann.getByText('helper').waitFor()
  await ann.getByText('list files').waitFor()
  expect(problems).toEqual([])
})

verifies('web:panel:letters', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  await hub.say('ann', 'for whoever comes')
  await hub.say('bob', 'never mind')
  const { page, problems } = await openPanel(hub, openPage)
  await page.getByRole('link', { name: 'Dead letters 2' }).click()
  await page.getByText('Register a client to deliver it.').first().waitFor()
  const token = await hub.register('helper')
  await lookAgain(page)
  await page.getByRole('button', { name: 'Deliver message 1' }).click()
  await page.getByText('for whoever comes').waitFor({ state: 'detached' })
  const { body } = await hub.poll(token)
  expect(body.messages.map(({ content }: { content: string }) => content)).toEqual(['for whoever comes'])
  await page.getByRole('button', { name: 'Discard message 2' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Discard' }).click()
  await page.getByText('Nothing was left undelivered').waitFor()
  expect((await hub.call('GET', '/hub/dead-letters')).body.total).toBe(0)
  expect(problems).toEqual([])
})

verifies('web:panel:route', async () => {
  const hub = await startTestHub()
  await hub.register('helper')
  const { page, problems } = await openPanel(hub, openPage, { part: 'route' })
  await page.getByLabel('User').fill('ann')
  await page.getByLabel('Text').fill('@helper hello')
  await page.getByRole('button', { name: 'Try' }).click()
  const said = page.locator('main').getByRole('status')
  await said.getByText('The text names this client with @.').waitFor()
  await said.getByText('helper', { exact: true }).waitFor()
  expect((await hub.call('GET', '/hub/messages')).body.messages).toEqual([])
  await page.getByLabel('Text').fill('/use helper')
  await page.getByRole('button', { name: 'Try' }).click()
  await said.getByText('From then on the user talks to helper.').waitFor()
  expect(problems).toEqual([])
})
