import { type Static, type TSchema, Type } from 'typebox'

/** The bodies of the agent server. Optional fields may be left out; unknown ones are ignored; wrong types are refused. */

const Text = (maxLength: number, description: string) => Type.String({ minLength: 1, maxLength, description })
const Steps = Type.Integer({ minimum: 1, maximum: 1000, description: 'Turns of the model at most.' })
const Model = Text(200, '`provider:model`.')
const SystemPrompt = Type.String({ maxLength: 200_000, description: 'Put before the conversation.' })
const Goal = Text(500_000, 'What the agent is to do.')
/** What a run may use up; the server's own limits hold as well. */
const Budget = {
  max_steps: Type.Optional(Steps),
  max_tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 1e12, description: 'Tokens at most, both ways.' })),
  max_cost: Type.Optional(
    Type.Number({ minimum: 0.000001, maximum: 1e9, description: 'US dollars at most, where the price is known.' }),
  ),
  wall_clock_ms: Type.Optional(
    Type.Integer({ minimum: 100, maximum: 86_400_000, description: 'How long it may work, waiting for a plan apart.' }),
  ),
}

export const StatelessRunBody = Type.Object({
  goal: Type.Optional(Goal),
  message: Type.Optional(Goal),
  content: Type.Optional(Goal),
  system_prompt: Type.Optional(SystemPrompt),
  model: Type.Optional(Model),
  plan_mode: Type.Optional(Type.Boolean({ description: 'Only false: nobody can approve a plan here.' })),
  ...Budget,
})

export const CreateSessionBody = Type.Object({
  system_prompt: Type.Optional(SystemPrompt),
  workspace: Type.Optional(Text(4096, 'A folder inside the server’s own; relative paths start there.')),
  model: Type.Optional(Model),
  max_steps: Type.Optional(Steps),
  title: Type.Optional(Type.String({ maxLength: 200 })),
  plan_mode: Type.Optional(Type.Boolean({ description: 'Writing tools are refused until a plan is approved.' })),
})

export const SessionRunBody = Type.Object({
  goal: Type.Optional(Goal),
  message: Type.Optional(Goal),
  content: Type.Optional(Goal),
  model: Type.Optional(Model),
  ...Budget,
  on_busy: Type.Optional(
    Type.Enum(['reject', 'enqueue', 'interrupt'], { description: 'What to do when a run is under way.' }),
  ),
})

export const ForkSessionBody = Type.Object({
  title: Type.Optional(Type.String({ maxLength: 200 })),
  messages: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1e9,
      description: 'How many messages are copied, from the first on; all when absent.',
    }),
  ),
})

export const PatchSessionBody = Type.Object({ title: Type.Optional(Type.String({ maxLength: 200 })) })

export const PlanBody = Type.Object({
  decision: Type.Enum(['approve', 'reject']),
  plan_id: Type.Optional(Type.String({ maxLength: 100 })),
  feedback: Type.Optional(Type.String({ maxLength: 100_000 })),
  plan: Type.Optional(Text(200_000, 'The plan as you want it carried out; leave it out to approve it as it is.')),
})

export const ConfirmPlanBody = Type.Object({
  plan_id: Type.Optional(Type.String({ maxLength: 100 })),
  edits: Type.Optional(Text(200_000, 'The plan as you want it carried out.')),
})

export const RejectPlanBody = Type.Object({
  plan_id: Type.Optional(Type.String({ maxLength: 100 })),
  reason: Type.Optional(Type.String({ maxLength: 100_000 })),
})

/** Answers. */
const Timestamp = Type.String({ format: 'date-time' })
const Uuid = Type.String({ format: 'uuid' })
const orNull = <T extends TSchema>(schema: T) => Type.Unsafe<Static<T> | null>({ ...schema, nullable: true })

const ContentBlock = Type.Object({
  type: Type.Enum(['text', 'tool_use', 'tool_result']),
  text: Type.Optional(Type.String({ description: 'With type text.' })),
  id: Type.Optional(Type.String({ description: 'With type tool_use.' })),
  name: Type.Optional(Type.String()),
  input: Type.Optional(Type.Unknown()),
  tool_use_id: Type.Optional(Type.String({ description: 'With type tool_result.' })),
  content: Type.Optional(Type.String()),
  is_error: Type.Optional(Type.Boolean()),
})

const WireMessage = Type.Object({
  role: Type.Enum(['user', 'assistant', 'tool']),
  content: Type.Array(ContentBlock),
  run_id: Type.String(),
  step: Type.Integer(),
  created_at: Timestamp,
})

const WireUsage = Type.Object({
  total_steps: Type.Integer(),
  total_tokens: Type.Integer(),
  input_tokens: Type.Integer(),
  output_tokens: Type.Integer(),
  cost: orNull(Type.Number({ description: 'US dollars, where the price is known.' })),
})

export const RunResult = Type.Object({
  status: Type.Enum(['finished']),
  finish_reason: Type.String(),
  messages: Type.Array(WireMessage),
  usage: WireUsage,
  run_id: Uuid,
})

export const SessionCreated = Type.Object({
  session_id: Uuid,
  created_at: Timestamp,
  workspace: Type.String(),
  model: Type.String(),
})

export const SessionForked = Type.Object({ ...SessionCreated.properties, forked_from: Uuid })

export const StreamTicket = Type.Object({
  ticket: Type.String(),
  expires_at: Timestamp,
  url: Type.String({ description: 'The stream, with the ticket in it.' }),
})

export const SessionSummary = Type.Object({
  session_id: Uuid,
  created_at: Timestamp,
  last_active: Timestamp,
  title: orNull(Type.String()),
  status: Type.Enum(['idle', 'running', 'awaiting_plan']),
  turn_count: Type.Integer(),
})

export const SessionDetails = Type.Object({
  session_id: Uuid,
  created_at: Timestamp,
  last_active: Timestamp,
  turn_count: Type.Integer(),
  transcript: Type.Array(WireMessage),
  status: Type.Enum(['idle', 'running', 'awaiting_plan']),
  active_run_id: orNull(Type.String()),
  pending_plan: orNull(
    Type.Object({ plan_id: Type.String(), plan: Type.String(), run_id: Type.String(), expires_at: Timestamp }),
  ),
  usage: WireUsage,
  system_prompt: orNull(Type.String()),
  workspace: Type.String(),
  title: orNull(Type.String()),
  model: Type.String(),
})

export const RunAccepted = Type.Object({
  run_id: Uuid,
  session_id: Uuid,
  status: Type.Enum(['running', 'queued']),
  events_url: Type.String(),
})

export const WireRun = Type.Object({
  run_id: Uuid,
  goal: Type.String(),
  status: Type.Enum(['queued', 'running', 'awaiting_plan', 'finished']),
  finish_reason: orNull(Type.String()),
  error: orNull(Type.String()),
  usage: WireUsage,
  created_at: Timestamp,
  started_at: orNull(Timestamp),
  finished_at: orNull(Timestamp),
})

export const WireTool = Type.Object({
  name: Type.String(),
  description: Type.String(),
  parameters: Type.Unsafe<Record<string, unknown>>({ type: 'object', description: 'JSON Schema of the input.' }),
  read_only: Type.Boolean(),
  source: Type.String(),
})

export const ErrorBody = Type.Object({
  error: Type.Object({
    code: Type.String(),
    message: Type.String(),
    details: Type.Optional(Type.Unsafe<unknown>({ type: 'object' })),
  }),
  request_id: Type.String(),
})

/** What every event's payload has: its run, and its number in the session's log. */
const OfRun = { run_id: Type.String(), id: Type.Integer() }

/** Payloads of the SSE events, by name: the contract's fields first, then ours. */
export const EVENT_SCHEMAS = {
  message: Type.Object({ role: Type.String(), content: Type.Array(ContentBlock), step: Type.Integer(), ...OfRun }),
  partial_message: Type.Object({ text: Type.String(), step: Type.Integer(), ...OfRun }),
  tool_call: Type.Object({
    name: Type.String(),
    step: Type.Integer(),
    call_id: Type.String(),
    arguments: Type.Optional(Type.Unknown({ description: 'The input of the tool.' })),
    ...OfRun,
  }),
  tool_result: Type.Object({
    name: Type.String(),
    success: Type.Boolean(),
    step: Type.Integer(),
    call_id: Type.String(),
    output: Type.String({ description: 'How the output begins.' }),
    ...OfRun,
  }),
  done: Type.Object({
    finish_reason: Type.String(),
    total_steps: Type.Integer(),
    usage: Type.Optional(WireUsage),
    ...OfRun,
  }),
  error: Type.Object({ message: Type.String(), code: Type.Optional(Type.String()), ...OfRun }),
  plan_proposed: Type.Object({ plan: Type.String(), plan_id: Type.String(), expires_at: Timestamp, ...OfRun }),
} as const

/** Payloads of the events that only a reader with `?extended=1` gets. */
export const EXTENDED_EVENT_SCHEMAS = {
  run_started: Type.Object({ goal: Type.String(), model: Type.String(), ...OfRun }),
  plan_decided: Type.Object({ plan_id: Type.String(), decision: Type.Enum(['approve', 'reject']), ...OfRun }),
  usage: Type.Object({ ...WireUsage.properties, ...OfRun }),
  compaction: Type.Object({
    kind: Type.Enum(['pruned', 'summarised']),
    covers: Type.Integer({ description: 'How many messages it is about, from the first on.' }),
    ...OfRun,
  }),
  tool_progress: Type.Object({ name: Type.String(), call_id: Type.String(), output: Type.String(), ...OfRun }),
} as const
