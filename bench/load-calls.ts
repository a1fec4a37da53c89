import { type Static, Type } from 'typebox'

/** What the bench asks of the load generator, one thing at a time. */
export const LoadCall = Type.Union([
  /** Connects one client per token and has each poll for ever: with the spec's empty body, or echoing the cursor. */
  Type.Object({
    do: Type.Literal('poll'),
    port: Type.Integer(),
    tokens: Type.Array(Type.String()),
    echo: Type.Boolean(),
    /** Client after client goes to the next of these instead. */
    ports: Type.Optional(Type.Array(Type.Integer())),
  }),
  /** Forgets what was received and waits for a new run of numbered messages. */
  Type.Object({ do: Type.Literal('expect'), run: Type.Integer(), count: Type.Integer() }),
  /** Answers once all messages of the run are in. */
  Type.Object({ do: Type.Literal('await') }),
  /** Every client sends this many messages, one after the other, all clients at once. */
  Type.Object({ do: Type.Literal('send'), perClient: Type.Integer() }),
  Type.Object({ do: Type.Literal('hangUp') }),
  /** Answers the milliseconds of CPU that the load generator has used. */
  Type.Object({ do: Type.Literal('tellCpu') }),
])
export type LoadCall = Static<typeof LoadCall>

/** What the clients of a run saw. */
export const Received = Type.Object({
  distinct: Type.Integer(),
  repeated: Type.Integer(),
  /** Answers that held messages. */
  answers: Type.Integer(),
  /** Shared microseconds at the last new message. */
  doneAt: Type.Number(),
  /** From saying to having, in order. */
  waitsMs: Type.Array(Type.Number()),
})
export type Received = Static<typeof Received>

export const Sent = Type.Object({ count: Type.Integer(), failed: Type.Integer(), tookMs: Type.Number() })

/** The text of message `index` of a run: long as a sentence or two, and it says when it was said. */
export function numberedText(run: number, index: number, saidAt: number): string {
  return `#${run}.${index}.${saidAt} `.padEnd(TEXT_CHARS, 'lorem ipsum dolor sit amet ')
}

/** Finds such texts in an answer. */
export const NUMBERED_TEXT = /"content":"#(\d+)\.(\d+)\.(\d+) /g

const TEXT_CHARS = 120
