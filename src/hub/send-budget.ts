import type { Conversation } from './model.ts'

/** What the service is said to allow. The numbers are hearsay, so they are settings; 0 sets no limit. */
export interface BudgetLimits {
  /** Messages for each message of the user. */
  sendsPerContext: number
  /** How long after the user's last message the user can be reached. */
  replyWindowMs: number
  /** Messages of one account in any stretch of `accountWindowMs`. */
  accountSends: number
  accountWindowMs: number
}

/** Counts what leaves, per account, and tells what is left. Only the account's limit is kept to; the rest is shown. */
export interface SendBudget {
  readonly limits: BudgetLimits
  /** A message went out, now or at a time known from before. */
  note(account: string, at?: number): void
  /** How long until so many more may go out; 0: now. */
  waitMs(account: string, messages: number): number
  /** How many went out in the last window, for every account that sent. */
  used(): Map<string, number>
  /** What is left for a conversation. */
  remaining(conversation: Conversation): Remaining
}

export interface Remaining {
  /** null: no limit, or nothing was heard of the user. */
  windowClosesAt: number | null
  sendsLeft: number | null
}

export function openSendBudget(limits: BudgetLimits, now: () => number): SendBudget {
  const { sendsPerContext, replyWindowMs, accountSends, accountWindowMs } = limits
  const sent = new Map<string, number[]>()

  return {
    limits,
    note(account, at = now()) {
      const times = recent(account)
      times.push(at)
      sent.set(account, times)
    },
    waitMs(account, messages) {
      if (accountSends === 0) return 0
      const times = recent(account)
      // One that is longer than a window allows goes out once the window is empty.
      const tooMany = times.length + Math.min(messages, accountSends) - accountSends
      const freed = tooMany > 0 ? times[tooMany - 1] : undefined
      return freed === undefined ? 0 : freed + accountWindowMs - now()
    },
    used: () => new Map([...sent.keys()].map((account) => [account, recent(account).length])),
    remaining: ({ lastInboundAt, sendsUsed }) => ({
      windowClosesAt: replyWindowMs === 0 || lastInboundAt === null ? null : lastInboundAt + replyWindowMs,
      sendsLeft: sendsPerContext === 0 ? null : Math.max(0, sendsPerContext - sendsUsed),
    }),
  }

  /** Forgets what is out of the window. Times come in order. */
  function recent(account: string): number[] {
    const times = sent.get(account) ?? []
    const since = now() - accountWindowMs
    const first = times.findIndex((at) => at > since)
    times.splice(0, first === -1 ? times.length : first)
    return times
  }
}
