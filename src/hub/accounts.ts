import { createHash } from 'node:crypto'
import { AppError } from '../kit/errors.ts'
import type { Log } from '../kit/log.ts'
import type { BotLogin } from './credentials.ts'
import type { Line } from './line.ts'
import type { LinkState, LinkView } from './link.ts'
import type { ConfirmedLogin } from './logins.ts'
import type { PendingSend } from './model.ts'
import type { Upstream } from './upstream/port.ts'
import type { Vault } from './vault.ts'

/** A login at the service, to be closed when another takes its place. */
export type Connection = Upstream & { close(): Promise<void> }

/** A bot account of the hub. */
export interface Account {
  name: string
  line: Line
  login: BotLogin | null
}

/** The bot accounts: at least one, logged in or not. */
export interface Accounts {
  /** Connects the accounts that have a login. With none at all there is the default one, waiting for its login. */
  start(logins: Map<string, BotLogin>): Promise<void>
  /** By name. */
  all(): readonly Account[]
  get(name: string): Account | undefined
  /** `not_found` with the names there are. */
  named(name: string): Account
  /** Sends what is in the store already, each from its own account. */
  resume(sends: PendingSend[]): void
  /** Keeps a login that the service confirmed, then polls and sends with it; another account when that one has this bot. */
  accept(name: string, confirmed: ConfirmedLogin): Promise<{ account: string; message: string }>
  /** Forgets the login. What waits in the clients' queues stays. */
  logOut(name: string): Promise<void>
  /** The account that is worst off; `/health` speaks of it. */
  worst(): { name: string; view: LinkView }
  isUp(): boolean
  drain(): Promise<void>
}

export interface AccountsOptions {
  openLine: (account: string) => Line
  connect: (login: BotLogin) => Connection
  vault: Vault
  /** Where logins begin. */
  serviceUrl: string
  /** The token that was configured for the default account, if any. */
  configuredToken: string | null
  log: Log
}

/** The account of who has only one. */
export const DEFAULT_ACCOUNT = 'main'
/** From bad to good. */
const WORST_FIRST: readonly LinkState[] = [
  'misconfigured',
  'needs_login',
  'reconnecting',
  'connecting',
  'throttled',
  'connected',
]

/** No account yet: `start` brings them. */
export function openAccounts(options: AccountsOptions): Accounts {
  const { vault, log } = options
  const accounts = new Map<string, Account & { connection: Connection | null }>()
  let last: Promise<unknown> = Promise.resolve()

  return {
    start: (logins) =>
      serially(async () => {
        for (const [name, login] of [...logins].sort(([a], [b]) => a.localeCompare(b, 'en'))) await connect(name, login)
        await keepOne()
      }),
    all: () => [...accounts.values()],
    get: (name) => accounts.get(name),
    named,
    resume(sends) {
      for (const send of sends) {
        const account = accounts.get(send.account)
        if (account) account.line.outbound.resume([send])
        else log.warn('a message cannot go out: its account is logged out', { account: send.account, sendId: send.id })
      }
    },
    accept: (name, confirmed) =>
      serially(async () => {
        const owner = [...accounts.values()].find(({ login }) => login?.botId === confirmed.botId)?.name ?? name
        const before = accounts.get(owner)?.login ?? null
        refuseStranger(owner, before, confirmed)
        const login: BotLogin = {
          ...confirmed,
          // The same bot goes on at its cursor, wherever the service has moved it.
          source: before?.botId === confirmed.botId ? before.source : cursorSource(options.serviceUrl, confirmed.botId),
          replaces: owner === DEFAULT_ACCOUNT ? digest(options.configuredToken) : null,
        }
        // Stored first: a login that works now and is gone after a restart would be worse than none.
        await vault.save(owner, login)
        await connect(owner, login)
        log.info('account logged in', { account: owner, bot: confirmed.botId })
        const other = owner === name ? '' : ` This bot is account ${owner} already, so that one was renewed.`
        return { account: owner, message: `Account ${owner} is logged in.${other}` }
      }),
    logOut: (name) =>
      serially(async () => {
        const account = accounts.get(named(name).name)
        if (account === undefined) return
        await vault.remove(name)
        accounts.delete(name)
        await account.line.drain()
        await account.connection?.close()
        await keepOne()
        log.info('account logged out', { account: name })
      }),
    worst() {
      const views = [...accounts.values()].map(({ name, line }) => ({ name, view: line.link.view() }))
      const rank = ({ view }: { view: LinkView }) => WORST_FIRST.indexOf(view.state)
      const [first, ...rest] = views
      if (first === undefined) throw new Error('there is no account')
      return rest.reduce((worst, one) => (rank(one) < rank(worst) ? one : worst), first)
    },
    isUp: () => [...accounts.values()].every(({ line }) => line.link.isUp()),
    async drain() {
      await last
      await Promise.all([...accounts.values()].map(({ line }) => line.drain()))
      await Promise.all([...accounts.values()].map(({ connection }) => connection?.close()))
    },
  }

  function named(name: string): Account {
    const account = accounts.get(name)
    if (account) return account
    const names = [...accounts.keys()].join(', ')
    throw new AppError('not_found', `There is no account "${name.slice(0, 64)}"; there is: ${names}.`)
  }

  async function connect(name: string, login: BotLogin): Promise<void> {
    const present = accounts.get(name)
    const line = present?.line ?? options.openLine(name)
    const connection = options.connect(login)
    await line.connect(connection, login.source)
    accounts.set(name, { name, line, login, connection })
    await present?.connection?.close()
  }

  async function keepOne(): Promise<void> {
    if (accounts.size > 0) return
    const line = options.openLine(DEFAULT_ACCOUNT)
    await line.disconnect('nobody has logged in yet')
    accounts.set(DEFAULT_ACCOUNT, { name: DEFAULT_ACCOUNT, line, login: null, connection: null })
  }

  function serially<T>(work: () => Promise<T>): Promise<T> {
    const result = last.then(work)
    last = result.catch(() => undefined)
    return result
  }
}

/** Somebody else's bot must not take over the conversations of this one. */
function refuseStranger(account: string, before: BotLogin | null, { botId, userId }: ConfirmedLogin): void {
  if (before === null || before.botId === botId || before.userId === null || userId === null) return
  if (before.userId.toLowerCase() === userId.toLowerCase()) return
  throw new AppError(
    'conflict',
    `Account ${account} belongs to another person than the one who scanned. Log that account out first, or log in under another account name.`,
  )
}

/** Which cursor belongs to a service and a bot. */
export function cursorSource(url: string, botId: string): string {
  return createHash('sha256').update(`${url}\n${botId}`).digest('hex').slice(0, 16)
}

/** The half of a token that names the bot; the secret half never leaves. */
export function botOf(token: string): string {
  return token.includes(':') ? token.slice(0, token.indexOf(':')) : token
}

/** Tells two configured tokens apart. */
export function digest(token: string | null): string | null {
  return token === null ? null : createHash('sha256').update(token).digest('base64url')
}
