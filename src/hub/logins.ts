import { randomBytes } from 'node:crypto'
import { AppError } from '../kit/errors.ts'
import type { Log } from '../kit/log.ts'
import { backoff, sleep } from '../kit/retry.ts'
import { type ServiceHosts, trustedUrl } from './service-hosts.ts'
import { type QrProgress, type QrService, UpstreamError } from './upstream/port.ts'

export type LoginStatus = 'wait' | 'scanned' | 'need_verify_code' | 'confirmed' | 'expired' | 'failed' | 'cancelled'

/** A login by QR code, as a person sees it. */
export interface LoginView {
  id: string
  account: string
  status: LoginStatus
  /** What the QR code says; null once there is nothing to scan. */
  qrText: string | null
  /** About when the code stops working; a new one follows by itself. */
  expiresAt: number | null
  message: string
}

/** What the service gave for a scanned code. */
export interface ConfirmedLogin {
  botToken: string
  botId: string
  userId: string | null
  baseUrl: string
}

/** Logins that are under way, and for a while those that ended. */
export interface Logins {
  /** Asks for a code and waits for the phone in the background; one that is under way for the account is given again. */
  start(account: string): Promise<{ login: LoginView; isNew: boolean }>
  get(id: string): LoginView
  list(): LoginView[]
  /** The number the phone shows. Fails with `conflict` when none is asked for. */
  verify(id: string, code: string): LoginView
  cancel(id: string): LoginView
  /** Cancels all; resolves when none is under way. */
  close(): Promise<void>
}

export interface LoginsOptions {
  service: QrService
  hosts: ServiceHosts
  now: () => number
  log: Log
  /** Keeps the login and connects the account; the text says what happened. Throws an `AppError` for a person. */
  accept: (account: string, login: ConfirmedLogin) => Promise<{ account: string; message: string }>
  /** Pause after a call that failed or came back too soon. */
  pauseMs?: number
}

const CODES = 3
const CODE_LASTS_MS = 2 * 60_000
const WHOLE_LOGIN_MS = 8 * 60_000
const KEPT_MS = 10 * 60_000
const MOST_UNDER_WAY = 8
const MOST_KEPT = 32
const PAUSE_MS = 1_000
const MOST_PAUSE_MS = 10_000

interface Login extends LoginView {
  /** The secret that stands for the code on show. */
  qrcode: string
  /** What to say while that code is on show. */
  invitation: string
  stop: AbortController
  endedAt: number | null
  /** The first code is there. */
  ready: Promise<void>
  done: Promise<void>
  /** Wakes the loop with the code a person typed. */
  onCode: ((code: string) => void) | null
}

const MESSAGES = {
  wait: 'Scan the QR code with the phone whose bot this is.',
  scanned: 'Scanned. Confirm the login on the phone.',
  need_verify_code: 'The phone shows a number. Type it here.',
  cancelled: 'Cancelled. Nothing has changed.',
} as const

/** Nothing under way. */
export function openLogins({ service, hosts, now, log, accept, pauseMs = PAUSE_MS }: LoginsOptions): Logins {
  const logins = new Map<string, Login>()

  return {
    async start(account) {
      forgetOld()
      const present = [...logins.values()].find((one) => one.account === account && one.endedAt === null)
      if (present) return { login: view(await shown(present)), isNew: false }
      if ([...logins.values()].filter(({ endedAt }) => endedAt === null).length >= MOST_UNDER_WAY) {
        throw new AppError('too_many_requests', 'Too many logins are under way; finish or cancel one first.', {
          retryAfterMs: 10_000,
        })
      }
      const login = create(account)
      // Entered before the first call, so that two requests at once share one code.
      logins.set(login.id, login)
      login.ready = askForCode(login)
      login.done = login.ready.then(
        () => run(login),
        () => void logins.delete(login.id),
      )
      return { login: view(await shown(login)), isNew: true }
    },
    get: (id) => view(find(id)),
    list() {
      forgetOld()
      return [...logins.values()].filter(({ qrText, endedAt }) => qrText !== null || endedAt !== null).map(view)
    },
    verify(id, code) {
      const login = find(id)
      if (login.status !== 'need_verify_code' || login.onCode === null)
        throw new AppError('conflict', `This login asks for no number now (it is "${login.status}").`)
      login.onCode(code)
      return view(login)
    },
    cancel(id) {
      const login = find(id)
      if (login.endedAt === null) end(login, 'cancelled', MESSAGES.cancelled)
      return view(login)
    },
    async close() {
      for (const login of logins.values()) if (login.endedAt === null) end(login, 'cancelled', MESSAGES.cancelled)
      await Promise.all([...logins.values()].map(({ done }) => done))
    },
  }

  function create(account: string): Login {
    return {
      id: randomBytes(12).toString('hex'),
      account,
      status: 'wait',
      qrText: null,
      expiresAt: null,
      message: 'Asking the messaging service for a QR code.',
      qrcode: '',
      invitation: MESSAGES.wait,
      stop: new AbortController(),
      endedAt: null,
      ready: Promise.resolve(),
      done: Promise.resolve(),
      onCode: null,
    }
  }

  function find(id: string): Login {
    forgetOld()
    const login = logins.get(id)
    if (login === undefined) throw new AppError('not_found', 'There is no such login; it is over, or never was.')
    return login
  }

  /** Once there is a code to scan. */
  async function shown(login: Login): Promise<Login> {
    try {
      await login.ready
      return login
    } catch (error) {
      throw unreachable(error)
    }
  }

  async function askForCode(login: Login, message: string = MESSAGES.wait): Promise<void> {
    const { qrcode, content } = await service.begin(login.stop.signal)
    login.status = 'wait'
    login.qrText = content
    login.expiresAt = now() + CODE_LASTS_MS
    login.message = message
    login.invitation = message
    login.qrcode = qrcode
  }

  async function run(login: Login): Promise<void> {
    const { signal } = login.stop
    const deadline = now() + WHOLE_LOGIN_MS
    const pause = backoff({ firstMs: pauseMs, mostMs: Math.max(pauseMs, MOST_PAUSE_MS) })
    let tried = 1
    let movedTo: string | null = null
    let verifyCode: string | null = null
    while (login.endedAt === null) {
      if (now() > deadline) return end(login, 'expired', 'Nobody finished the login in time. Start it again.')
      try {
        const asked = { qrcode: login.qrcode, verifyCode, baseUrl: movedTo }
        const startedAt = now()
        const progress = await service.status(asked, signal)
        if (login.endedAt !== null) return
        verifyCode = null
        pause.reset()
        if (progress.status === 'redirect') {
          movedTo = followed(progress.host)
          show(login, 'scanned', MESSAGES.scanned)
        } else if (progress.status === 'need_verify_code') {
          verifyCode = await codeFor(login, deadline)
        } else if (progress.status === 'expired' || progress.status === 'verify_code_blocked') {
          if (tried === CODES) return end(login, 'expired', `${why(progress)} ${CODES} times. Start the login again.`)
          tried += 1
          movedTo = null
          await askForCode(login, `${why(progress)}; here is a new one (${tried} of ${CODES}). ${MESSAGES.wait}`)
        } else if (await settle(login, progress)) return
        // A service that does not hold the call must not be asked without pause.
        if (now() - startedAt < pauseMs) await sleep(pauseMs, signal)
      } catch (error) {
        if (login.endedAt !== null) return
        if (!(error instanceof UpstreamError) || error.kind !== 'unreachable') return fail(login, error)
        login.message = 'The messaging service cannot be reached; trying again.'
        await sleep(pause.next(), signal)
      }
    }
  }

  /** True when the login is over. */
  async function settle(login: Login, progress: QrProgress): Promise<boolean> {
    if (progress.status === 'wait' || progress.status === 'scanned') {
      // A phone that has scanned does not go back to waiting.
      if (progress.status === 'scanned') show(login, 'scanned', null)
      else if (login.status === 'wait') show(login, 'wait', login.invitation)
      return false
    }
    if (progress.status === 'already_bound') {
      end(
        login,
        'failed',
        'The service says that this bot is logged in already. Unbind it on the phone, then try again.',
      )
      return true
    }
    if (progress.status !== 'confirmed') return false
    const { botToken, botId, userId, baseUrl } = progress
    const { account, message } = await accept(login.account, {
      botToken,
      botId,
      userId,
      baseUrl: baseUrl === null ? hosts.baseUrl : followed(baseUrl),
    })
    login.account = account
    end(login, 'confirmed', message)
    return true
  }

  function followed(named: string): string {
    const url = trustedUrl(named, hosts)
    if (url !== null) return url
    const shown = named.replace(/[^\w.:/[\]-]/g, '').slice(0, 100)
    throw new AppError(
      'untrusted_host',
      `The service sends the login on to ${shown}, which this hub does not know. If that is right, allow it with --upstream-hosts.`,
    )
  }

  function codeFor(login: Login, deadline: number): Promise<string | null> {
    show(
      login,
      'need_verify_code',
      login.status === 'need_verify_code' ? 'That was not the number on the phone. Try again.' : null,
    )
    const given = new Promise<string>((resolve) => {
      login.onCode = resolve
    })
    const over = new AbortController()
    const late = sleep(Math.max(0, deadline - now()), AbortSignal.any([login.stop.signal, over.signal]))
    return Promise.race([given, late.then(() => null)]).finally(() => {
      login.onCode = null
      over.abort()
    })
  }

  function show(login: Login, status: 'wait' | 'scanned' | 'need_verify_code', message: string | null): void {
    login.status = status
    login.message = message ?? MESSAGES[status]
  }

  function fail(login: Login, error: unknown): void {
    if (!(error instanceof AppError || error instanceof UpstreamError))
      log.error('login failed unexpectedly', { account: login.account, error })
    const text =
      error instanceof AppError
        ? error.message
        : error instanceof UpstreamError
          ? `The login failed: ${error.message}. Start it again.`
          : 'The login failed; the log of the hub says more.'
    end(login, 'failed', text)
  }

  function end(login: Login, status: LoginStatus, message: string): void {
    login.status = status
    login.message = message
    login.qrText = null
    login.expiresAt = null
    login.endedAt = now()
    log.info('login ended', { account: login.account, status })
    login.stop.abort()
  }

  function forgetOld(): void {
    const ended = [...logins.values()].filter(({ endedAt }) => endedAt !== null)
    for (const [index, { id, endedAt }] of ended.entries())
      if (ended.length - index > MOST_KEPT || now() - (endedAt ?? 0) > KEPT_MS) logins.delete(id)
  }
}

function why({ status }: QrProgress): string {
  return status === 'expired' ? 'The QR code expired' : 'The number was wrong too often'
}

function view({ id, account, status, qrText, expiresAt, message }: Login): LoginView {
  return { id, account, status, qrText, expiresAt, message }
}

function unreachable(error: unknown): unknown {
  if (!(error instanceof UpstreamError)) return error
  return new AppError('upstream_down', `The messaging service gave no QR code (${error.message}). Try again.`, {
    retryAfterMs: 5_000,
    cause: error,
  })
}
