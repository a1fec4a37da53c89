import { AppError } from '../../kit/errors.ts'
import type { HttpServer } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import { BudgetQuery, SendsQuery } from '../../wire/hub.ts'
import type { Hub } from '../hub.ts'
import type { Conversation, SendRecord } from '../model.ts'
import { iso } from './bodies.ts'
import { page } from './letter-routes.ts'

const checkBudget = checker(BudgetQuery, 'query')
const checkSends = checker(SendsQuery, 'query')

/** Who can still be written to, and what became of what was written. */
export function sendRoutes(app: HttpServer, { store, registry, budget, now }: Hub): void {
  app.get('/hub/budget', async (request) => {
    const { user, after, limit } = checkBudget(request.query)
    const found = await store.conversations.list({
      ...(user === undefined ? {} : { userId: user }),
      ...(after === undefined ? {} : { after: place(after) }),
      limit: page(undefined, limit).limit,
    })
    return {
      conversations: found.map(conversationBody),
      limits: {
        sends_per_context: budget.limits.sendsPerContext || null,
        reply_window_ms: budget.limits.replyWindowMs || null,
        account_sends: budget.limits.accountSends || null,
        account_window_ms: budget.limits.accountWindowMs,
      },
      account_sends_used: Object.fromEntries(budget.used()),
    }
  })

  app.get('/hub/sends', async (request) => {
    const { user, before, limit } = checkSends(request.query)
    const found = await store.sends.list({ ...(user === undefined ? {} : { userId: user }), ...page(before, limit) })
    return { sends: found.map(sendBody) }
  })

  function conversationBody(conversation: Conversation) {
    const { account, userId, lastInboundAt, chosenClientId } = conversation
    return {
      account,
      user: userId,
      chosen: nameOf(chosenClientId),
      last_message_at: lastInboundAt === null ? null : iso(lastInboundAt),
      ...remainingBody(conversation, { budget, now }),
      after: `${account}/${userId}`,
    }
  }

  function sendBody({ id, clientId, account, userId, state, createdAt, parts }: SendRecord) {
    return {
      id,
      client: nameOf(clientId),
      account,
      to_user: userId,
      state,
      created_at: iso(createdAt),
      parts: parts.map(({ state, upstreamId }) => ({ state, upstream_id: upstreamId })),
    }
  }

  function nameOf(clientId: number | null): string | null {
    return clientId === null ? null : (registry.get(clientId)?.name ?? null)
  }
}

/** What is left of a conversation's window and context. */
export function remainingBody(conversation: Conversation, { budget, now }: Pick<Hub, 'budget' | 'now'>) {
  const { windowClosesAt, sendsLeft } = budget.remaining(conversation)
  return {
    window_closes_at: windowClosesAt === null ? null : iso(windowClosesAt),
    window_open: windowClosesAt === null ? null : windowClosesAt > now(),
    context_sends_used: conversation.sendsUsed,
    context_sends_left: sendsLeft,
  }
}

/** Where a list goes on, as the one before it said. */
function place(after: string): { account: string; userId: string } {
  const slash = after.indexOf('/')
  if (slash < 1)
    throw new AppError('bad_request', 'after must be the `after` of the last conversation you have.', {
      details: { field: 'after' },
    })
  return { account: after.slice(0, slash), userId: after.slice(slash + 1) }
}
