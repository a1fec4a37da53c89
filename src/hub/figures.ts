import type { Metrics } from '../kit/metrics.ts'
import type { Account } from './accounts.ts'
import type { DeliveryDesk } from './delivery.ts'
import type { Registry } from './registry.ts'
import type { SendBudget } from './send-budget.ts'
import type { DeadLetterStore } from './store/port.ts'

/** What is counted as it happens. docs/metrics.md describes each. */
export type Figures = ReturnType<typeof createFigures>

export function createFigures(metrics: Metrics) {
  return {
    messages: metrics.counter('messages_total', 'Messages from the service, by what became of them.', ['state']),
    handedOut: metrics.counter('deliveries_total', 'Messages handed to polls, first time or again.', ['kind']),
    died: metrics.counter('dead_letters_total', 'Messages that left a queue unreceived, by reason.', ['reason']),
    sends: metrics.counter('sends_total', 'Messages to users, by outcome.', ['outcome']),
    media: metrics.counter('media_transfers_total', 'Files that passed through the hub, by direction and outcome.', [
      'direction',
      'outcome',
    ]),
    polls: metrics.counter('polls_total', 'Client polls that ended, by how.', ['answer']),
    linkChanges: metrics.counter('upstream_changes_total', 'Changes of the link to the service, by its new state.', [
      'link',
    ]),
    refusedTokens: metrics.counter('refused_tokens_total', 'Client calls with a missing or unknown token.'),
    wait: metrics.histogram(
      'delivery_wait_seconds',
      'From the commit of a message to its first handing out.',
      [0.001, 0.005, 0.01, 0.05, 0.25, 1, 5, 30, 300, 3600],
    ),
  }
}

/** What is looked up when somebody asks. */
export function observe(
  metrics: Metrics,
  parts: {
    registry: Registry
    delivery: DeliveryDesk
    accounts: () => readonly Account[]
    budget: SendBudget
    deadLetters: DeadLetterStore
    now: () => number
  },
): void {
  const { registry, delivery, accounts, budget, deadLetters, now } = parts
  metrics.gauge(
    'clients',
    'Registered clients by presence.',
    (gauge) => {
      const online = registry.onlineCount()
      gauge.set({ status: 'online' }, online)
      gauge.set({ status: 'offline' }, registry.all().length - online)
    },
    ['status'],
  )
  metrics.gauge(
    'queue_messages',
    'Messages of a client that are not yet acknowledged.',
    (gauge) => {
      gauge.reset()
      for (const { id, name } of registry.all()) {
        const { lastSeq, settledSeq } = delivery.position(id)
        gauge.set({ client: name }, lastSeq - settledSeq)
      }
    },
    ['client'],
  )
  metrics.gauge('parked_polls', 'Client polls that wait for a message.', (gauge) => gauge.set(delivery.parked))
  metrics.gauge('send_lane_waiting', 'Sends that wait for their turn.', (gauge) =>
    gauge.set(accounts().reduce((sum, { line }) => sum + line.waiting, 0)),
  )
  metrics.gauge(
    'account_window_sends',
    'Messages an account sent within its window (--account-window-ms).',
    (gauge) => {
      for (const [account, count] of budget.used()) gauge.set({ account }, count)
    },
    ['account'],
  )
  // A store that is broken is when the other figures are wanted most.
  metrics.gauge(
    'dead_letters',
    'Dead letters that wait for an operator; -1 while the store does not answer.',
    async (gauge) => gauge.set(await deadLetters.count().catch(() => -1)),
  )
  metrics.gauge(
    'upstream_up',
    '1 while the account is connected to the messaging service.',
    (gauge) => {
      gauge.reset()
      for (const { name, line } of accounts()) gauge.set({ account: name }, line.link.isUp() ? 1 : 0)
    },
    ['account'],
  )
  metrics.gauge(
    'upstream_last_poll_age_seconds',
    "Since the account's last completed upstream poll; -1 before the first.",
    (gauge) => {
      gauge.reset()
      for (const { name, line } of accounts()) {
        const { lastPollAt } = line.link.view()
        gauge.set({ account: name }, lastPollAt === null ? -1 : (now() - lastPollAt) / 1000)
      }
    },
    ['account'],
  )
}
