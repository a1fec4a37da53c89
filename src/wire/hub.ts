import { Type } from 'typebox'

/** The bodies of the administration endpoints. */

const Label = Type.String({ maxLength: 128 })
const UserId = Type.String({ minLength: 1, maxLength: 256 })

export const RegisterBody = Type.Object({
  name: Type.String({ description: '1 to 64 characters after trimming, no control characters.' }),
  label: Type.Optional(Label),
  fallback: Type.Optional(Type.Boolean({ description: 'Taken only when no other client is there.' })),
})

export const PatchClientBody = Type.Object({
  label: Type.Optional(Label),
  default: Type.Optional(Type.Boolean({ description: 'The client for users who chose nobody.' })),
  fallback: Type.Optional(Type.Boolean()),
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
  user: Type.Optional(Type.String()),
  state: Type.Optional(Type.Enum(['routed', 'command', 'unrouted', 'suppressed', 'quarantined'])),
  reason: Type.Optional(Type.Enum(['overflow', 'expired', 'undeliverable', 'client_removed', 'no_client'])),
  before: Type.Optional(Type.String({ description: 'The id of a message or letter.' })),
  limit: Type.Optional(Type.String({ description: 'A whole number from 1 to 1000.' })),
})
