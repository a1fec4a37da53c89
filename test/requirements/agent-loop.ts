import type { Requirements } from './requirement.ts'

/** The loop and the models. */
export const agentLoop = {
  'agent:loop:ends': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'The loop asks the model, runs the tools it calls, and ends with NoMoreToolCalls when it calls none.',
  },
  'agent:loop:tool-fails': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'A tool that fails is a result for the model, and the run goes on.',
  },
  'agent:loop:provider-stop': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'A model that stops for another reason, or fails, ends the run with ProviderStop.',
  },
  'agent:loop:valid-request': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'From any prefix of any log comes a valid request: one result for each call, no empty block.',
  },
  'agent:loop:recorded-first': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'A call is recorded before it runs.',
  },
  'agent:loop:parallel': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'Tools that only read run together, eight at most; writers run in order.',
  },
  'agent:loop:last-step': {
    source: 'design/agent-decisions.md: The loop',
    behaviour:
      'On the last of several steps the model is told to answer without tools; BudgetExceeded only where it wanted a call.',
  },
  'agent:loop:clocks': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'A model that is silent before its first byte, between pieces, or too long in all is given up.',
  },
  'agent:loop:retries': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'A call of the model is tried again with growing pauses and as Retry-After says.',
  },
  'agent:loop:no-retry-after-output': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'A call of the model is never repeated once something of its turn was told.',
  },
  'agent:loop:stuck': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'Three identical calls with identical results get a nudge, five end the run with Stuck.',
  },
  'agent:loop:pruned': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'Old tool output is pruned at 0.6 of the window.',
  },
  'agent:loop:summary': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'At 0.8 of the window a summary stands for the old part, at most twice without progress.',
  },
  'agent:loop:overflow': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'A request that cannot be made short enough ends the run with ContextOverflow.',
  },
  'agent:loop:log-whole': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'Compaction changes the request alone: the log keeps everything.',
  },
  'agent:loop:tokens-cost': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'Tokens and cost end a run, with what sub-tasks and summaries used.',
  },
  'agent:loop:wall-clock': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'A run whose time is over ends with WallClockExceeded.',
  },
  'agent:model:names': {
    source: 'design/agent-decisions.md: Providers',
    behaviour: 'A model is named provider:model; a provider alone means its default.',
  },
  'agent:model:by-key': {
    source: 'design/agent-decisions.md: Providers',
    behaviour: 'Without --model a key in the environment chooses its provider.',
  },
  'agent:model:base-url': {
    source: 'design/agent-decisions.md: Providers',
    behaviour: 'A base URL from the environment is asked, by chat completions where OpenAI is meant.',
  },
  'agent:model:per-run': {
    source: 'design/agent-decisions.md: Providers',
    behaviour: 'A session and a run may name another model.',
  },
  'agent:model:scripted': {
    source: 'design/agent-decisions.md: Providers',
    behaviour: 'The scripted model says what its file says.',
  },
  'agent:model:demo-default': {
    source: 'design/agent-decisions.md: Providers',
    behaviour: 'With no key in sight the demo model answers.',
  },
  'agent:model:demo-talks': {
    source: 'design/agent-decisions.md: Providers',
    behaviour: 'The demo model answers any goal with at least two deltas, a message, and token counts.',
  },
  'agent:model:demo-calls': {
    source: 'design/agent-decisions.md: Providers',
    behaviour: 'The demo model really calls the tool that the words ask for, and says nothing beside it.',
  },
  'agent:model:told': {
    source: 'design/agent-decisions.md: Providers',
    behaviour: 'Banner, health and session say which model answers.',
  },
  'agent:model:lazy': {
    source: 'design/agent-decisions.md: Providers',
    behaviour: 'The packages of the vendors are loaded only where they are used.',
  },
  'agent:model:wire': {
    source: 'issue 3: What must show',
    behaviour: 'The real wires of OpenAI, Anthropic and Google are spoken, and their faults end in a documented error.',
  },
} as const satisfies Requirements
