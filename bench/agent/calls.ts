import { type Static, Type } from 'typebox'

/** What the bench asks of the agents' load generator, one thing at a time. */
export const AgentCall = Type.Union([
  /** Makes sessions; answers their ids. */
  Type.Object({ do: Type.Literal('create'), port: Type.Integer(), count: Type.Integer() }),
  /** One run in each session, `atOnce` of them at a time, each read to its end from the POST itself. */
  Type.Object({
    do: Type.Literal('run'),
    port: Type.Integer(),
    sessions: Type.Array(Type.String()),
    atOnce: Type.Integer(),
    /** Connection after connection goes to the next of these instead. */
    ports: Type.Optional(Type.Array(Type.Integer())),
  }),
  /** Opens that many streams of one session. */
  Type.Object({
    do: Type.Literal('subscribe'),
    port: Type.Integer(),
    session: Type.String(),
    count: Type.Integer(),
  }),
  /** Starts a run in that session, and answers once every stream has its `done`. */
  Type.Object({ do: Type.Literal('fanOut'), port: Type.Integer(), session: Type.String() }),
  Type.Object({ do: Type.Literal('hangUp') }),
  /** Starts runs at one port, one after the other, read there and at another; answers how much later events came there. */
  Type.Object({
    do: Type.Literal('follow'),
    port: Type.Integer(),
    remotePort: Type.Integer(),
    session: Type.String(),
    runs: Type.Integer(),
  }),
  /** Answers the milliseconds of CPU that the load generator has used. */
  Type.Object({ do: Type.Literal('tellCpu') }),
])
export type AgentCall = Static<typeof AgentCall>

/** What the runs took: to the first event, and to `done`. */
export const Ran = Type.Object({
  tookMs: Type.Number(),
  firstMs: Type.Array(Type.Number()),
  doneMs: Type.Array(Type.Number()),
})
export type Ran = Static<typeof Ran>

/** Milliseconds from an event at the reader nearby to the same event at the one far away. */
export const Followed = Type.Object({ lagsMs: Type.Array(Type.Number()) })
export type Followed = Static<typeof Followed>

export const FannedOut = Type.Object({ tookMs: Type.Number(), bytes: Type.Number() })
export type FannedOut = Static<typeof FannedOut>

/** What the bench says to the model: the first has it call one tool, the second many. */
export const RUN_GOAL = 'one call'
export const FAN_OUT_GOAL = 'many calls'
