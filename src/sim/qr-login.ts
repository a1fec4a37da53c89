import { randomBytes } from 'node:crypto'
import type { Doorbell } from '../kit/doorbell.ts'
import { AppError } from '../kit/errors.ts'
import type { QrCode, QrStatus, ScanBody } from '../wire/sim.ts'
import type { Bot } from './bots.ts'
import { userIdOf } from './user-id.ts'

/** What a bot is told about its code. The last three come with `confirmed`. */
export interface QrProgress {
  status: QrStatus
  bot_token?: string
  ilink_bot_id?: string
  ilink_user_id?: string
  /** With `scaned_but_redirect`. */
  redirect_host?: string | undefined
}

/** Logins by QR code: the bot shows a code, a phone scans it. A change rings {@link qrKey}. */
export interface QrLogin {
  issue(): QrCode
  /** The phone scans, and confirms unless told not to. Fails with `unknown_qr`, `qr_expired` or `qr_used`. */
  scan(body: ScanBody): QrCode
  /** The bot repeats the code that the phone shows. */
  verify(qrcode: string, verifyCode: string): void
  /** What the bot has not been told yet, one step at a time; never waits. */
  news(qrcode: string): QrProgress[]
  current(qrcode: string): QrProgress
  list(): QrCode[]
}

interface Code {
  qrcode: string
  status: QrStatus
  expiresAt: number
  untold: QrStatus[]
  scanned: ScanBody
  wrongCodes: number
  login: Omit<QrProgress, 'status'>
}

const LIFETIME_MS = 2 * 60_000
const MOST_CODES = 1_000
const MOST_WRONG_CODES = 3
const FINAL: ReadonlySet<QrStatus> = new Set(['confirmed', 'expired', 'verify_code_blocked', 'binded_redirect'])

/** The doorbell key of a code. */
export function qrKey(qrcode: string): string {
  return `qr ${qrcode}`
}

/** `logIn` gives an account its new token. */
export function createQrLogin(
  now: () => number,
  doorbell: Doorbell,
  logIn: (bot: string | undefined) => { bot: Bot; token: string },
): QrLogin {
  const codes = new Map<string, Code>()

  return {
    issue() {
      const qrcode = randomBytes(16).toString('hex')
      const expiresAt = now() + LIFETIME_MS
      const code: Code = {
        qrcode,
        status: 'wait',
        expiresAt,
        untold: [],
        scanned: { qrcode },
        wrongCodes: 0,
        login: {},
      }
      codes.set(qrcode, code)
      for (const oldest of codes.keys()) if (codes.size > MOST_CODES) codes.delete(oldest)
      doorbell.ring(qrKey(qrcode))
      return view(code)
    },
    scan(body) {
      const code = scannable(body.qrcode)
      code.scanned = body
      if (body.already_bound) {
        advance(code, 'binded_redirect')
        return view(code)
      }
      if (body.redirect_host !== undefined) advance(code, 'scaned_but_redirect')
      else if (code.status === 'wait') advance(code, 'scaned')
      if (body.confirm === false) return view(code)
      if (body.verify_code === undefined) confirm(code)
      else advance(code, 'need_verifycode')
      return view(code)
    },
    verify(qrcode, verifyCode) {
      const code = find(qrcode)
      if (code?.status !== 'need_verifycode') return
      if (verifyCode === code.scanned.verify_code) return confirm(code)
      code.wrongCodes += 1
      advance(code, code.wrongCodes < MOST_WRONG_CODES ? 'need_verifycode' : 'verify_code_blocked')
    },
    news(qrcode) {
      const code = find(qrcode)
      const status = code?.untold.shift()
      if (status) return [progress(code, status)]
      const now = code?.status ?? 'expired'
      return FINAL.has(now) ? [progress(code, now)] : []
    },
    current(qrcode) {
      const code = find(qrcode)
      return progress(code, code?.status ?? 'expired')
    },
    list: () => [...codes.keys()].flatMap((qrcode) => find(qrcode) ?? []).map(view),
  }

  function find(qrcode: string): Code | undefined {
    const code = codes.get(qrcode)
    if (code && code.expiresAt <= now() && !FINAL.has(code.status)) {
      code.untold = []
      code.status = 'expired'
    }
    return code
  }

  function scannable(qrcode: string): Code {
    const code = find(qrcode)
    const details = { field: 'qrcode' }
    if (code === undefined) {
      throw new AppError('unknown_qr', 'There is no such QR code; GET /sim/qr lists them.', { details })
    }
    if (['wait', 'scaned', 'scaned_but_redirect'].includes(code.status)) return code
    if (code.status === 'expired')
      throw new AppError('qr_expired', 'The QR code has expired; let the bot ask for another.')
    throw new AppError('qr_used', `The QR code was scanned already (${code.status}).`, { details })
  }

  function confirm(code: Code): void {
    const { bot, token } = logIn(code.scanned.bot)
    code.login = { bot_token: token, ilink_bot_id: bot.id, ilink_user_id: userIdOf(code.scanned.as ?? 'owner') }
    advance(code, 'confirmed')
  }

  function advance(code: Code, status: QrStatus): void {
    code.status = status
    code.untold.push(status)
    doorbell.ring(qrKey(code.qrcode))
  }
}

function progress(code: Code | undefined, status: QrStatus): QrProgress {
  if (status === 'scaned_but_redirect') return { status, redirect_host: code?.scanned.redirect_host }
  return status === 'confirmed' ? { status, ...code?.login } : { status }
}

function view({ qrcode, status, expiresAt }: Code): QrCode {
  return { qrcode, status, expires_at: expiresAt }
}
