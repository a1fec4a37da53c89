import type { Requirements } from './requirement.ts'

const STATE = 'issue 3: Build 6'
const SHOWN = 'issue 3: What must show'
const EVENTS = 'design/agent-decisions.md: Events'
const HTTP = 'design/agent-decisions.md: HTTP'
const PLANS = 'design/agent-decisions.md: Plans and leases'

/** What the agent server keeps, and what a crash leaves of it. */
export const agentStore = {
  'agentstore:memory:default': {
    source: STATE,
    behaviour: 'Without --data-dir nothing is written; what there was is gone with the process.',
  },
  'agentstore:files:private': {
    source: STATE,
    behaviour: 'The data directory has the mode 0700 and its files 0600.',
  },
  'agentstore:files:hidden': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'The data directory is not visible in a workspace: not to tools, not to the shell, not as a workspace.',
  },
  'agentstore:lock:exclusive': {
    source: STATE,
    behaviour: 'A second server on a data directory ends with an error that names the first one by its process.',
  },
  'agentstore:lock:unusable': {
    source: STATE,
    behaviour: 'A data directory that cannot be used is refused at the start with what to do.',
  },
  'agentstore:schema:versioned': {
    source: STATE,
    behaviour: 'The tables have a version; a newer one is refused and left as it is.',
  },
  'agentstore:disk:full': {
    source: STATE,
    behaviour: 'While the disk is full writes are refused with 503 and what to do; nothing acknowledged is lost.',
  },
  'agentstore:disk:ready': {
    source: 'issue 3: Build 1 (ready)',
    behaviour:
      'While nothing can be stored /ready is 503 with the reason, and 200 again when a write works, by itself.',
  },
  'agentstore:disk:cancel': {
    source: 'issue 3: Why; docs/operations.md',
    behaviour:
      'While the end of a run cannot be stored, who cancels it, deletes its session or interrupts it is told so and does not hang; the run is Cancelled when it can.',
  },
  'agentstore:crash:one-done': {
    source: SHOWN,
    behaviour: 'After any number of kill -9 every accepted run has exactly one done.',
  },
  'agentstore:crash:ids-rise': {
    source: SHOWN,
    behaviour: 'Event ids go on rising over a crash, without gaps; what a reader has seen is still there.',
  },
  'agentstore:crash:valid-request': {
    source: SHOWN,
    behaviour: 'The transcript that a crash leaves makes a request that every provider accepts.',
  },
  'agentstore:crash:interrupted': {
    source: STATE,
    behaviour: 'A run that a crash left running ends with error and done Interrupted before the port opens.',
  },
  'agentstore:crash:queue-goes-on': {
    source: STATE,
    behaviour: 'Runs that were queued start after the restart, in their order.',
  },
  'agentstore:crash:plan-waits': {
    source: PLANS,
    behaviour: 'A plan goes on waiting over a crash and can then be approved with edits or rejected with feedback.',
  },
  'agentstore:plans:expire': {
    source: HTTP,
    behaviour: 'A plan that nobody answers for 24 hours from its proposal counts as rejected, restarts included.',
  },
  'agentstore:plans:compare-and-set': {
    source: HTTP,
    behaviour:
      'The same decision again gets 200, another one 409; none pending 409; of two at once exactly one counts.',
  },
  'agentstore:log:bounded': {
    source: EVENTS,
    behaviour: 'A log keeps its newest events; an older cursor gets 410 with what there is; the transcript stays.',
  },
  'agentstore:receipts:same': {
    source: HTTP,
    behaviour: 'A repetition gets the receipt of the first call, over a restart too, and though there is no room.',
  },
  'agentstore:list:cursor': {
    source: HTTP,
    behaviour: 'A page after a session that is not there is refused, never begun anew.',
  },
} as const satisfies Requirements
