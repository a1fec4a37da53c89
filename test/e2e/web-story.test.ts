import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, vi } from 'vitest'
import { seriousProblems, testBrowser } from '../support/browser.ts'
import { lookAgain, registerOnPage, shownToken } from '../support/panel.ts'
import { temporaryFolder } from '../support/processes.ts'
import { ANY_PORTS, ask, startUp } from '../support/running-up.ts'
import { verifies } from '../support/verifies.ts'

// A browser takes its time on a busy machine.
vi.setConfig({ testTimeout: 180_000 })

const openPage = testBrowser()
const SLOWLY = { timeout: 60_000 }

verifies(
  'web:story:whole',
  async () => {
    const folder = temporaryFolder()
    const workspace = join(folder, '.switchboard', 'workspace')
    mkdirSync(workspace, { recursive: true })
    writeFileSync(join(workspace, 'beds.csv'), 'bed,plant\n')
    const up = await startUp(ANY_PORTS, folder)
    const problems: string[][] = []
    const open = async (url: string): Promise<Page> => {
      const opened = await openPage()
      problems.push(opened.problems)
      await opened.page.goto(url)
      return opened.page
    }

    // A user writes, sees that the bot is typing, and gets the answer.
    const chat = await open(`${up.sim}/`)
    await chat.getByText('Bot connected').waitFor(SLOWLY)
    const ann = chat.getByRole('region', { name: 'Chat of ann' })
    const say = async (text: string) => {
      await ann.getByLabel('Message as ann').fill(text)
      await chat.keyboard.press('Enter')
    }
    await say('list files')
    await ann.getByRole('log').getByText('beds.csv').waitFor(SLOWLY)
    await say('run: sleep 3')
    await ann.getByText('The bot is typing').waitFor(SLOWLY)
    await ann.getByText('The bot is typing').waitFor({ state: 'detached', ...SLOWLY })

    // The session behind it, with its tool call.
    const console = await open(`${up.agent}/ui`)
    await console.getByText('ann@im.wechat').first().click()
    const log = console.getByRole('log')
    await log.getByText('list_dir').first().click()
    await log.locator('pre').getByText('beds.csv').first().waitFor(SLOWLY)
    expect(await seriousProblems(console)).toEqual([])

    // The client, and the message with its route and the reason.
    const panel = await open(`${up.hub}/hub/ui`)
    await panel.getByText('1 of 1 online').waitFor(SLOWLY)
    await panel.getByRole('link', { name: 'Messages' }).click()
    await panel.getByText('list files').first().waitFor(SLOWLY)
    const { messages } = await ask(`${up.hub}/hub/messages`)
    await panel.locator('code').getByText(messages[0].reason).first().waitFor(SLOWLY)
    expect(await seriousProblems(panel)).toEqual([])

    // A client of one's own: registered, its configuration copied, rotated, deleted.
    await panel.getByRole('link', { name: 'Clients' }).click()
    await panel.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await registerOnPage(panel, 'mine')
    const token = await shownToken(panel)
    const dialog = panel.getByRole('dialog')
    await dialog.getByText('JSON').click()
    await dialog.getByRole('button', { name: 'Copy: the configuration' }).click()
    expect(String(await panel.evaluate('navigator.clipboard.readText()'))).toContain(token)
    await dialog.getByRole('button', { name: 'I have kept it' }).click()
    await panel.getByRole('button', { name: 'Manage mine' }).click()
    await dialog.getByRole('button', { name: 'Rotate token…' }).click()
    await dialog.getByRole('button', { name: 'Not at all' }).click()
    await dialog.getByRole('heading', { name: 'The token of mine' }).waitFor(SLOWLY)
    expect(await shownToken(panel)).not.toBe(token)
    await panel.keyboard.press('Escape')

    // Deleted while a message waits for it: that is a dead letter, which goes to the other one.
    await say('@mine keep this')
    await vi.waitFor(async () => expect((await ask(`${up.hub}/hub/clients/mine`)).queue_size).toBe(1), {
      timeout: 30_000,
    })
    await lookAgain(panel)
    await panel.getByRole('button', { name: 'Manage mine' }).click()
    await dialog.getByRole('button', { name: 'Delete…' }).click()
    await dialog.getByRole('button', { name: 'Delete mine' }).click()
    await panel.getByRole('link', { name: 'Dead letters' }).click()
    await panel.getByText('keep this').first().waitFor(SLOWLY)
    const letters = async () => (await ask(`${up.hub}/hub/dead-letters`)).total
    expect(await letters()).toBe(1)
    await panel
      .getByRole('button', { name: /^Deliver message/ })
      .first()
      .click()
    await vi.waitFor(async () => expect(await letters()).toBe(0), { timeout: 30_000 })

    // The service breaks, the panel says so and what to do; it is mended.
    await chat.getByRole('button', { name: 'Service away' }).click()
    const notice = panel.getByRole('region', { name: 'Messaging service' })
    await expect.poll(async () => (await ask(`${up.hub}/health`)).status, { timeout: 30_000 }).toBe('degraded')
    await lookAgain(panel)
    await notice.getByText('Reconnecting:').waitFor(SLOWLY)
    await chat.getByRole('button', { name: 'Mend all' }).click()
    await expect.poll(async () => (await ask(`${up.hub}/health`)).status, { timeout: 60_000 }).toBe('ok')
    await lookAgain(panel)
    await notice.waitFor({ state: 'detached', ...SLOWLY })

    // A plan, approved with an edit.
    await console.getByRole('button', { name: 'New session' }).click()
    await console.getByLabel('Title').fill('Planned')
    await console.getByRole('button', { name: 'Start' }).click()
    await console.getByRole('heading', { name: 'Planned' }).waitFor(SLOWLY)
    await console.getByLabel('What the agent is to do').fill('plan: tidy up')
    await console.keyboard.press('Enter')
    await console.getByRole('textbox', { name: /^Plan/ }).fill('tidy up, but keep the beds')
    await console.getByRole('button', { name: 'Approve with my changes' }).click()
    await console.getByText('keep the beds').filter({ visible: true }).first().waitFor(SLOWLY)
    await console.getByText('Done.').waitFor(SLOWLY)

    expect(await seriousProblems(chat)).toEqual([])
    // What breaks while the service is away is the browser's to tell.
    expect(problems.flat().filter((problem) => !/Failed to load resource|ERR_/.test(problem))).toEqual([])
  },
  180_000,
)
