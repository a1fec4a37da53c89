import { expect, vi } from 'vitest'
import { seriousProblems, testBrowser } from '../support/browser.ts'
import { lookAgain, openPanel } from '../support/panel.ts'
import { startTestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

// A browser takes its time on a busy machine.
vi.setConfig({ testTimeout: 90_000 })

const openPage = testBrowser()

verifies('web:panel:login', async () => {
  const hub = await startTestHub()
  const { page, problems } = await openPanel(hub, openPage)
  hub.sim.control.faults.add({ kind: 'expired' })
  await until(() => hub.hub.link.view().state === 'needs_login')
  await lookAgain(page)
  await page.getByRole('link', { name: 'Log in with a QR code' }).click()
  await page.getByRole('button', { name: 'Log in with a QR code: main' }).click()
  const dialog = page.getByRole('dialog', { name: 'Log in main' })
  await dialog.getByRole('img', { name: 'QR code to scan with the messenger' }).waitFor()
  const width = await page.evaluate(
    `(async (image) => { await image.decode(); return image.naturalWidth })(document.querySelector('img.qr'))`,
  )
  expect(width).toBeGreaterThan(0)
  expect(await seriousProblems(page)).toEqual([])

  // The phone, which wants its code to be repeated.
  const phone = await openPage()
  await phone.page.goto(hub.sim.url)
  const scanner = phone.page.getByRole('region', { name: 'Scan a QR code' })
  await scanner.getByLabel('Ask for this code').fill('4711')
  await scanner.getByRole('button', { name: 'Scan and confirm' }).click()
  await scanner.getByText('waits for the code').waitFor()
  await lookAgain(page)
  await dialog.getByLabel('The code that the phone shows').fill('4711')
  await page.keyboard.press('Enter')
  await until(() => hub.hub.link.isUp())
  await lookAgain(page)
  await dialog.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('region', { name: 'Messaging service' }).getByText('Connected').waitFor()
  expect([...problems, ...phone.problems]).toEqual([])
})

verifies('web:panel:pairings', async () => {
  const hub = await startTestHub()
  const { page, problems } = await openPanel(hub, openPage)
  const ask = async () => (await hub.call('GET', '/relay/bot/get_bot_qrcode')).body.qrcode
  const first = await ask()
  await lookAgain(page)
  const asking = page.getByRole('region', { name: 'Asking to be let in' })
  await asking.getByText('127.0.0.1').waitFor()
  await asking.getByRole('button', { name: 'Let it in…' }).click()
  await page.getByLabel('Name').fill('newcomer')
  await page.getByRole('button', { name: 'Let it in', exact: true }).click()
  await page.getByText('newcomer').waitFor()
  const status = await hub.call('GET', `/relay/bot/get_qrcode_status?qrcode=${first}`)
  expect(status.body).toMatchObject({ status: 'confirmed', bot_token: expect.stringMatching(/^vhub_|:/) })
  await asking.waitFor({ state: 'detached' })
  await ask()
  await lookAgain(page)
  await asking.getByRole('button', { name: 'Reject' }).click()
  await asking.waitFor({ state: 'detached' })
  expect((await hub.call('GET', '/hub/clients')).body.total).toBe(1)
  expect(problems).toEqual([])
})
