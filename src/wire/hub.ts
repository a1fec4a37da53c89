import { Type } from 'typebox'

/** The bodies of the administration endpoints. */

const Label = Type.String({ maxLength: 128 })
const AccountName = Type.String({
  pattern: '^[a-z0-9][a-z0-9._-]{0,31}$',
  description: 'A bot account: 1 to 32 of a-z, 0-9, dot, dash and underscore, beginning with a letter or digit.',
})
const AccountBinding = Type.Union([AccountName, Type.Null()], {
  description: 'The bot account whose messages it gets; null: those of all.',
})
const UserId = Type.String({ minLength: 1, maxLength: 256 })

export const RegisterBody = Type.Object({
  name: Type.String({ description: '1 to 64 characters after trimming, no control characters.' }),
  label: Type.Optional(Label),
  fallback: Type.Optional(Type.Boolean({ description: 'Taken only when no other client is there.' })),
  account: Type.Optional(AccountBinding),
})

export const PatchClientBody = Type.Object({
  label: Type.Optional(Label),
  default: Type.Optional(Type.Boolean({ description: 'The client for users who chose nobody.' })),
  fallback: Type.Optional(Type.Boolean()),
  account: Type.Optional(AccountBinding),
  passthrough: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 32 }), {
      maxItems: 32,
      description: 'Hub commands it wants to see itself.',
    }),
  ),
})

export const RotateBody = Type.Object({
  overlap_seconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 86_400, description: 'How long the old token stays good.' }),
  ),
})

export const DefaultClientBody = Type.Object({
  name: Type.Union([Type.String(), Type.Null()], { description: 'null: no default.' }),
})

export const DryRunBody = Type.Object({
  user: UserId,
  text: Type.String({ maxLength: 100_000 }),
  account: Type.Optional(AccountName),
})

export const ReplayBody = Type.Object({
  client: Type.Optional(Type.String({ maxLength: 64, description: 'Another client than the one it was for.' })),
})

export const BulkBody = Type.Object({
  ids: Type.Optional(Type.Array(Type.Integer({ minimum: 1 }), { maxItems: 1000 })),
  client: Type.Optional(Type.String({ maxLength: 64, description: 'All letters of this client.' })),
})

export const ListQuery = Type.Object({
  client: Type.Optional(Type.String()),
  account: Type.Optional(AccountName),
  user: Type.Optional(Type.String()),
  state: Type.Optional(Type.Enum(['routed', 'command', 'unrouted', 'suppressed', 'quarantined'])),
  reason: Type.Optional(Type.Enum(['overflow', 'expired', 'undeliverable', 'client_removed', 'no_client'])),
  before: Type.Optional(Type.String({ description: 'The id of a message or letter.' })),
  limit: Type.Optional(Type.String({ description: 'A whole number from 1 to 1000.' })),
})

export const LoginBody = Type.Object({
  account: Type.Optional(AccountName),
})

export const VerifyCodeBody = Type.Object({
  code: Type.String({ pattern: '^[A-Za-z0-9]{1,20}$', description: 'What the phone shows.' }),
})

export const ApproveBody = Type.Object({
  name: Type.String({ description: 'The client it becomes, as at registration.' }),
  label: Type.Optional(Label),
  account: Type.Optional(AccountBinding),
  user: Type.Optional(UserId),
  replace: Type.Optional(
    Type.Boolean({ description: 'The client of that name gets a new token; its old one ends, its queue stays.' }),
  ),
})

/** A client that asks to be let in. */
export interface PairingAnswer {
  id: string
  status: 'pending' | 'opened' | 'approved' | 'delivered' | 'rejected' | 'expired'
  /** The address the request came from. */
  from: string
  created_at: string
  expires_at: string
  /** The client it became. */
  name: string | null
  /** Where an admin approves it in a browser. */
  page: string
}

/** A bot account and its link to the messaging service. Times are ISO 8601. */
export interface AccountAnswer {
  account: string
  state: 'connecting' | 'connected' | 'throttled' | 'reconnecting' | 'needs_login' | 'misconfigured'
  reason: string
  since: string
  next_retry_at: string | null
  /** What a person has to do; null when it mends itself. */
  action: string | null
  last_poll_at: string | null
  bot_id: string | null
  /** Whose bot it is. */
  user_id: string | null
  base_url: string | null
}

/** A login by QR code. */
export interface LoginAnswer {
  login_id: string
  account: string
  status: 'wait' | 'scanned' | 'need_verify_code' | 'confirmed' | 'expired' | 'failed' | 'cancelled'
  /** What the QR code says, and the code as a picture; null when there is nothing to scan. */
  qr_text: string | null
  qr_svg: string | null
  expires_at: string | null
  /** What to do, or what happened, in a sentence. */
  message: string
}

export interface UpstreamAnswer {
  accounts: AccountAnswer[]
  logins: LoginAnswer[]
}
const Page = Type.Optional(Type.String({ description: 'A whole number from 1 to 1000.' }))

export const BudgetQuery = Type.Object({
  user: Type.Optional(Type.String()),
  after: Type.Optional(Type.String({ description: 'Of the last conversation of the page before.' })),
  limit: Page,
})

export const SendsQuery = Type.Object({
  user: Type.Optional(Type.String()),
  before: Type.Optional(Type.String({ description: 'The id of a send.' })),
  limit: Page,
})
