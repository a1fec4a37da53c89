import { createInterface } from 'node:readline/promises'
import pc from 'picocolors'
import { type HubLogin, hubLogins } from '../client/hub-logins.ts'
import { AppError } from '../kit/errors.ts'
import { sleep } from '../kit/retry.ts'
import { ASK_HUB } from './ask.ts'
import type { CommandSpec } from './command.ts'

const ASK_EVERY_MS = 1_000
const MOST_MISSES = 10

/** `switchboard login` */
export const loginCommand: CommandSpec = {
  name: 'login',
  description: 'log a bot account in at the messaging service, by QR code',
  group: 'Look after a hub:',
  words: [{ name: '[account]', help: 'which account; "main" when absent' }],
  settings: ASK_HUB,
  examples: [
    ['switchboard login', 'log the main account in, or in again'],
    ['switchboard login shop', 'add a second account'],
  ],
  async run({ words: [account = 'main'], read }) {
    const values = read(ASK_HUB)
    const login = hubLogins({ url: values.hub, adminToken: values.adminToken })
    let shown = await login.start(account)
    let drawn: string | null = null
    let said = ''
    let misses = 0
    while (shown.status === 'wait' || shown.status === 'scanned' || shown.status === 'need_verify_code') {
      if (!values.json && shown.qr_text !== null && shown.qr_text !== drawn) await draw(shown.qr_text)
      drawn = shown.qr_text
      if (!values.json && shown.message !== said) console.log(shown.message)
      said = shown.message
      if (shown.status === 'need_verify_code') await login.verify(shown.login_id, await ask())
      await sleep(ASK_EVERY_MS)
      try {
        shown = await login.get(shown.login_id)
        misses = 0
      } catch (error) {
        // A hub that is being restarted is waited for; one that has forgotten the login says so.
        misses += 1
        if (!(error instanceof AppError && error.code === 'hub_unreachable') || misses > MOST_MISSES) throw error
      }
    }
    finish(shown, values.json)
  },
}

function finish(login: HubLogin, asJson: boolean): void {
  if (asJson) console.log(JSON.stringify({ account: login.account, status: login.status, message: login.message }))
  else console.log(login.status === 'confirmed' ? pc.green(login.message) : pc.red(login.message))
  if (login.status !== 'confirmed') process.exit(1)
}

async function draw(text: string): Promise<void> {
  const { renderUnicodeCompact } = await import('uqr')
  console.log(`\n${renderUnicodeCompact(text, { border: 2 })}\n${pc.dim(`or open ${text}`)}\n`)
}

async function ask(): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return (await lines.question('The number on the phone: ')).trim()
  } finally {
    lines.close()
  }
}
