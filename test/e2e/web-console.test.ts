import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { expect, test, vi } from 'vitest'
import { madeElements, seriousProblems, testBrowser } from '../support/browser.ts'
import { overflow } from '../support/panel.ts'
import { startTestAgent, type TestAgent } from '../support/test-agent.ts'
import { until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

// A browser takes its time on a busy machine.
vi.setConfig({ testTimeout: 90_000 })

const openPage = testBrowser()

async function openConsole(agent: TestAgent, options: BrowserContextOptions & { session?: string } = {}) {
  const { session = '', ...rest } = options
  const opened = await openPage(rest)
  await opened.page.goto(`${agent.url}/ui#/${session}`)
  return opened
}

const say = async (page: Page, text: string) => {
  await page.getByLabel('What the agent is to do').fill(text)
  await page.keyboard.press('Enter')
}

/** Whether a person sees it: inside the part that scrolls, and not under the box to write in. */
const inSight = (element: Locator) =>
  element.evaluate((button) => {
    const { top, bottom } = button.getBoundingClientRect()
    const box = button.closest('.scroll')?.getBoundingClientRect()
    return box !== undefined && top >= box.top && bottom <= box.bottom
  })

verifies(['web:console:run', 'web:console:sessions'], async () => {
  const agent = await startTestAgent()
  writeFileSync(join(agent.workspace, 'notes.txt'), 'first line\nsecond line')
  const { page, problems } = await openConsole(agent)
  await page.getByText('No session yet').waitFor()
  await page.getByRole('button', { name: 'New session' }).click()
  await page.getByLabel('Title').fill('Look around')
  await page.getByRole('button', { name: 'Start' }).click()
  await page.getByRole('heading', { name: 'Look around' }).waitFor()
  await say(page, 'list files')
  const log = page.getByRole('log')
  await log.getByText('There is 1 entry here: notes.txt.').waitFor()
  await log.getByText('Done.').waitFor()
  await log.getByText('list_dir').click()
  await log.getByText('"path": "."').waitFor()
  await log.locator('pre').getByText('notes.txt').waitFor()
  await page.getByText(/demo · 2 steps · [\d,]+ tokens/).waitFor()

  // An old session is there again after loading, and can be played.
  await page.reload()
  await log.getByText('Done.').waitFor()
  expect(await log.locator('.person').allTextContents()).toEqual([expect.stringContaining('list files')])
  await page.getByRole('button', { name: 'Replay' }).click()
  await page.getByRole('button', { name: 'Stop replay' }).waitFor()
  await page.clock.fastForward(60_000)
  await page.getByRole('button', { name: 'Replay', exact: true }).waitFor()
  await log.getByText('Done.').waitFor()

  const original = page.url()
  const sessions = async () => (await agent.call('GET', '/sessions')).body.length
  await page.getByRole('button', { name: 'Fork' }).click()
  await until(async () => (await sessions()) === 2)
  const [fork] = (await agent.call('GET', '/sessions?limit=1')).body
  await page.waitForURL(`**/ui#/${fork.session_id}`)
  // Its past is there, though nothing has happened in it yet.
  await log.getByText('There is 1 entry here: notes.txt.').waitFor()
  await say(page, 'hello')
  await log.getByText('Done.').waitFor()
  expect(await log.locator('.person').count()).toBe(2)
  await agent.call('DELETE', `/sessions/${fork.session_id}`)
  await page.goto(original)
  await log.getByText('Done.').waitFor()

  await page.getByRole('button', { name: 'Rename' }).click()
  await page.getByRole('dialog').getByLabel('Title').fill('Another name')
  await page.keyboard.press('Enter')
  await page.getByRole('navigation').getByText('Another name').waitFor()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('button', { name: 'Delete it' }).click()
  await page.getByText('No session yet').waitFor()
  expect((await agent.call('GET', '/sessions')).body).toEqual([])
  expect(problems).toEqual([])
})

verifies('web:console:live', async () => {
  const agent = await startTestAgent({
    script: [[{ text: ['One ', 'moment'] }, { stall: 'forever' }], [{ text: 'Never said.' }]],
  })
  const session = await agent.session({ title: 'Slow' })
  const { page, problems } = await openConsole(agent, { session })
  await page.getByRole('heading', { name: 'Slow' }).waitFor()
  // Somebody else starts it: the page sees it all the same.
  await agent.run(session, 'take your time')
  await page.getByText('One moment').waitFor()
  await page.getByRole('log').getByText('take your time').waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('Stopped by a person.').waitFor()
  expect(problems).toEqual([])
})

verifies('web:console:plan', async () => {
  const agent = await startTestAgent()
  const session = await agent.session({ title: 'Planned' })
  const { page, problems } = await openConsole(agent, { session, viewport: { width: 1000, height: 520 } })
  await say(page, 'plan: tidy up')
  const plan = page.getByRole('textbox', { name: /^Plan/ })
  await plan.waitFor()
  // Little of it fits beside the box to write in: what is to be decided is in sight nevertheless.
  await until(() => inSight(page.getByRole('button', { name: 'Approve' })))
  expect(await plan.inputValue()).toBe('tidy up')
  await plan.fill('tidy up, but keep the notes')
  await page.getByRole('button', { name: 'Approve with my changes' }).click()
  await page.locator('.plan').getByText('approved').waitFor()
  await page.locator('.said.agent').getByText('keep the notes').waitFor()
  await page.getByText('Done.').waitFor()
  expect(await page.getByRole('log').locator('.tool').allTextContents()).toEqual([
    expect.stringMatching(/propose_plan.*done/),
  ])

  await say(page, 'plan: throw all away')
  await page.getByLabel('why').fill('no, never')
  await page.getByRole('button', { name: 'Reject' }).click()
  await page.locator('.plan').getByText('rejected').waitFor()
  await until(async () => (await page.getByText('Done.').count()) === 2)
  expect(problems).toEqual([])
})

verifies(['web:console:keys', 'web:pages:policy'], async () => {
  const agent = await startTestAgent({ authKeys: ['the-key', 'another'] })
  const headers = { 'x-api-key': 'the-key' }
  await agent.call('POST', '/sessions', { body: { title: 'A secret matter' }, headers })
  // Not a part of the API, so not by the caller that holds answers against its description.
  const shell = await fetch(`${agent.url}/ui`)
  expect(shell.status).toBe(200)
  expect(shell.headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; script-src 'self'; style-src 'self';/,
  )
  expect(await shell.text()).not.toContain('secret')
  expect((await fetch(`${agent.url}/ui/assets/..%2f..%2fpackage.json`)).status).toBe(404)
  expect((await fetch(`${agent.url}/ui/other`)).status).toBe(401)

  const { page, problems } = await openConsole(agent)
  const field = page.getByLabel('API key')
  await field.waitFor()
  expect(await page.content()).not.toContain('secret')
  await field.fill('wrong')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('This key is not accepted.').waitFor()
  await field.fill('the-key')
  await page.keyboard.press('Enter')
  await page.getByText('A secret matter').click()
  await say(page, 'hello')
  await page.getByText('Done.').waitFor()
  expect(page.url()).not.toContain('the-key')
  expect(await page.evaluate('JSON.stringify([localStorage, document.cookie])')).not.toContain('the-key')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await field.waitFor()
  expect(await page.content()).not.toContain('secret')
  expect(problems.filter((problem) => !problem.includes('401'))).toEqual([])
})

verifies('web:pages:markup', 'the console shows markup as text', async () => {
  const evil = '<img src=x onerror="document.title=1"></pre><script>document.title=2</script>'
  const agent = await startTestAgent({
    script: [
      [{ tool_calls: [{ name: 'read_file', input: { path: `${evil}.txt` } }] }],
      [{ tool_calls: [{ name: 'read_file', input: { path: 'evil.txt' } }] }],
      [{ text: `said ${evil}` }],
    ],
  })
  writeFileSync(join(agent.workspace, 'evil.txt'), `inside ${evil}`)
  const session = await agent.session({ title: `title ${evil}`, system_prompt: evil })
  const { page, problems } = await openConsole(agent, { session })
  await page.getByRole('heading', { name: `title ${evil}` }).waitFor()
  await say(page, `goal ${evil}`)
  await page.getByText(`said ${evil}`).waitFor()
  await page.getByText(`goal ${evil}`).waitFor()
  await page.getByText('read_file').nth(1).click()
  await page.locator('pre').getByText(`inside ${evil}`).waitFor()
  expect(await madeElements(page)).toBe(0)
  expect(await page.title()).toBe('Switchboard agent')
  expect(problems).toEqual([])
})

for (const colorScheme of ['light', 'dark'] as const) {
  verifies('web:pages:accessible', `axe finds nothing serious on the console in ${colorScheme} mode`, async () => {
    const agent = await startTestAgent({ authKeys: ['the-key'] })
    const { page } = await openConsole(agent, { colorScheme })
    const field = page.getByLabel('API key')
    await field.waitFor()
    expect(await seriousProblems(page)).toEqual([])
    await field.fill('the-key')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'New session' }).click()
    expect(await seriousProblems(page)).toEqual([])
    await page.getByRole('button', { name: 'Start' }).click()
    await page.getByText('Nothing was said here yet').waitFor()
    expect(await seriousProblems(page)).toEqual([])
    await say(page, 'list files')
    await page.getByText('Done.').waitFor()
    await page.getByText('list_dir').click()
    await say(page, 'plan: tidy up')
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    expect(await seriousProblems(page)).toEqual([])
  })
}

verifies('web:pages:phone', 'the console fits on a phone, one thing at a time', async () => {
  const agent = await startTestAgent()
  const session = await agent.session({ title: 'a'.repeat(200) })
  const { page } = await openConsole(agent, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true })
  await page.getByText('a'.repeat(200)).waitFor()
  expect(await overflow(page)).toBe(0)
  await page.getByText('a'.repeat(200)).tap()
  await say(page, `say ${'w'.repeat(300)}`)
  await page.getByText('Done.').waitFor()
  expect(await overflow(page)).toBe(0)
  expect(await page.getByRole('navigation').isVisible()).toBe(false)
  await page.getByRole('link', { name: 'Sessions' }).tap()
  await page.getByRole('button', { name: 'New session' }).waitFor()
  expect(session).not.toBe('')
})

test('a session that another deleted is told', async () => {
  const agent = await startTestAgent()
  const session = await agent.session({ title: 'Short-lived' })
  const { page } = await openConsole(agent, { session })
  await page.getByRole('heading', { name: 'Short-lived' }).waitFor()
  await agent.call('DELETE', `/sessions/${session}`)
  await page.getByText('This session is gone').waitFor()
})
