import { AppError } from '../kit/errors.ts'
import type { Account } from './accounts.ts'
import type { DeliveryDesk } from './delivery.ts'
import type { Client } from './model.ts'
import type { HubStore } from './store/port.ts'

/** How a client says whom it means. */
export interface NamedRecipient {
  contextToken?: string | undefined
  userId?: string | undefined
  /** The field the user's id came in, for an error that names it. */
  userField: string
}

/** Whom a client's message is for, and which bot account it goes out from. */
export interface Recipient {
  account: string
  userId: string
}

export interface RecipientsOptions {
  store: Pick<HubStore, 'deliveries' | 'conversations'>
  delivery: Pick<DeliveryDesk, 'used'>
  accounts: () => readonly Account[]
  now: () => number
}

const CONTEXT_LASTS_MS = 7 * 24 * 60 * 60_000

/** Finds the user a context token speaks of or, failing that, one the client has seen; never a guess. */
export function recipientFinder({ store, delivery, accounts, now }: RecipientsOptions) {
  return async (client: Client, { contextToken, userId, userField }: NamedRecipient): Promise<Recipient> => {
    if (!contextToken) return userId ? byUser(client, userId, userField) : unknownContext()
    const owner = await store.deliveries.resolveContext(contextToken)
    if (owner === null || owner.clientId !== client.id || now() - owner.createdAt > CONTEXT_LASTS_MS)
      return unknownContext()
    if (userId && userId.toLowerCase() !== owner.userId.toLowerCase()) {
      throw new AppError('bad_request', `${userField} is not the user that context_token speaks of; leave it out.`, {
        details: { field: userField },
      })
    }
    delivery.used(owner)
    return { account: owner.account, userId: owner.userId }
  }

  async function byUser(client: Client, userId: string, userField: string): Promise<Recipient> {
    const found = await accountsWith(client, userId)
    const [account] = found
    if (account === undefined) return unknownContext()
    if (found.length === 1) return { account, userId }
    throw new AppError(
      'bad_request',
      `${userField} is known in several accounts (${found.join(', ')}); send the context_token of the message you answer, or bind this client to one account.`,
      { details: { field: userField } },
    )
  }

  async function accountsWith(client: Client, userId: string): Promise<string[]> {
    const names = client.account === null ? accounts().map(({ name }) => name) : [client.account]
    const found: string[] = []
    for (const name of names) if (await store.conversations.hasSeen(client.id, name, userId)) found.push(name)
    return found
  }
}

/** The same text for an unknown, an expired and somebody else's token: nothing can be learnt by trying. */
function unknownContext(): never {
  throw new AppError(
    'unknown_context',
    'This context_token is not known for this client, or has expired; use the one of a recent message.',
  )
}
