import type { Requirements } from './requirement.ts'

const BRIDGE = 'issue 5: Build 1, bridge'
const SHOW = 'issue 5: What must show, the bridge'

/** The bridge, `switchboard up`, and the command line. */
export const product = {
  'bridge:session:one-per-conversation': {
    source: BRIDGE,
    behaviour: 'Each conversation is answered by one session of the agent, and no two by the same.',
  },
  'bridge:session:over-restarts': {
    source: BRIDGE,
    behaviour: 'A conversation goes on in its session after the bridge was restarted.',
  },
  'bridge:typing:while-working': {
    source: BRIDGE,
    behaviour: 'The user sees typing while the agent works, and no longer when it is done.',
  },
  'bridge:answer:split': {
    source: BRIDGE,
    behaviour: "An answer over the messenger's limit goes out in pieces of at most 2,000 characters, in order.",
  },
  'bridge:answer:code-whole': {
    source: BRIDGE,
    behaviour:
      'A fenced block of code stays in one piece where it fits; a longer one is closed and opened at each cut.',
  },
  'bridge:tools:one-line': {
    source: BRIDGE,
    behaviour: 'With --show-tools the user is told of tool activity in one short line; without it nothing is said.',
  },
  'bridge:plan:approve': {
    source: BRIDGE,
    behaviour: 'A plan is asked in the chat, and "approve" lets the agent go on.',
  },
  'bridge:plan:edit': {
    source: BRIDGE,
    behaviour: 'With "approve: …" the agent carries out the plan as the user wrote it.',
  },
  'bridge:plan:reject': {
    source: BRIDGE,
    behaviour: 'After "reject: …", or any other words, the agent hears the reason why its plan is not carried out.',
  },
  'bridge:plan:elsewhere': {
    source: BRIDGE,
    behaviour: 'A plan that is decided elsewhere goes on in the chat without a word of the user.',
  },
  'bridge:command:new': { source: BRIDGE, behaviour: '/new in the chat begins a new session.' },
  'bridge:command:stop': {
    source: BRIDGE,
    behaviour: '/stop in the chat ends the run under way and says so; with none it says that nothing is running.',
  },
  'bridge:command:model': {
    source: BRIDGE,
    behaviour: '/model <name> in the chat chooses the model of the next runs of that conversation.',
  },
  'bridge:merge:while-running': {
    source: BRIDGE,
    behaviour: 'Messages that come while a run is on become one run after it.',
  },
  'bridge:errors:one-sentence': {
    source: BRIDGE,
    behaviour: 'An error of the agent is told to the user in one plain sentence.',
  },
  'bridge:errors:agent-away': {
    source: BRIDGE,
    behaviour: 'While the agent is away the user is told once, and is answered when it is back.',
  },
  'bridge:several:agents': {
    source: BRIDGE,
    behaviour: 'Several bridges bring several agents behind one hub, each reached by its name.',
  },
  'bridge:media:label': {
    source: BRIDGE,
    behaviour: 'Pictures and files reach the agent as a label, a quote as a short remark.',
  },
  'bridge:load:five-hundred': {
    source: SHOW,
    behaviour: 'Of 500 conversations at once on the demo model each is answered once, and in order.',
  },
  'bridge:crash:bridge': {
    source: SHOW,
    behaviour: 'The bridge killed at any moment and restarted answers every message, and none twice.',
  },
  'bridge:crash:hub': {
    source: SHOW,
    behaviour:
      'With the hub killed at any moment and restarted every message is answered, twice only where the user is told.',
  },
  'bridge:crash:agent': {
    source: SHOW,
    behaviour: 'A run in flight when the agent is killed is begun again, and the user is told.',
  },
} as const satisfies Requirements
