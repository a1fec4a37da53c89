import type { Requirements } from './requirement.ts'

const BRIDGE = 'issue 5: Build 1, bridge'
const SHOW = 'issue 5: What must show, the bridge'
const UP = 'issue 5: Build 2, switchboard up'
const CLI = 'issue 5: Build 4, the command line'

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
  'bridge:answer:service-away': {
    source: BRIDGE,
    behaviour: 'An answer whose fate is unknown is sent again after pauses that grow, with a word about it.',
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
    behaviour:
      '/model <name> in the chat chooses the model of the next runs of that conversation; one that the agent does not take is refused at once.',
  },
  'bridge:empty:told': {
    source: BRIDGE,
    behaviour: 'A message of nothing but white space is answered with a plain sentence, and the agent is not asked.',
  },
  'bridge:session:per-account': {
    source: BRIDGE,
    behaviour:
      'A user who writes to two bot accounts of one hub has a conversation with each; a journal of before goes on.',
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
  'up:start:everything': {
    source: UP,
    behaviour: '`switchboard up` runs hub, sim, agent and bridge in one process, and a user of the sim is answered.',
  },
  'up:start:one-directory': {
    source: UP,
    behaviour:
      'It keeps all its data in one directory, tokens for the owner alone, and gives the agent a folder of its own.',
  },
  'up:start:banner': { source: UP, behaviour: 'Its banner names the three pages and the model in use.' },
  'up:start:fallback': {
    source: UP,
    behaviour: 'Its bridge is registered as a fallback, so that other clients come first.',
  },
  'up:start:backlog': {
    source: UP,
    behaviour: 'Who wrote before the first start is answered: users are heard only once the agent is there.',
  },
  'up:stop:quick': {
    source: UP,
    behaviour: 'Connections that never said a word (browsers open them on suspicion) do not hold up the end.',
  },
  'up:stop:clean': {
    source: UP,
    behaviour: 'Ctrl-C stops all of it cleanly, and started again it goes on in the same sessions of the bridge.',
  },
  'up:config:real': {
    source: UP,
    behaviour: 'With a messaging service or a model configured it uses those instead of the sim and the demo.',
  },
  'up:config:port-taken': {
    source: UP,
    behaviour: 'A port that is taken is told, with what to do about it, and nothing is left running.',
  },
  'cli:chat:streams': {
    source: CLI,
    behaviour: '`switchboard chat` shows text and tools as they come, from a terminal, an argument or a pipe.',
  },
  'cli:chat:plan': {
    source: CLI,
    behaviour: 'A plan can be approved, approved with changes or rejected in the terminal.',
  },
  'cli:chat:model': {
    source: CLI,
    behaviour: 'A model that the agent does not take is told when it is chosen, and the one before goes on.',
  },
  'cli:chat:key': { source: CLI, behaviour: 'A key that is missing or wrong is told by its name, AGENT_KEY.' },
  'cli:chat:interrupt': { source: CLI, behaviour: 'Ctrl-C cancels the run under way and not the program.' },
  'cli:chat:resume': { source: CLI, behaviour: '`switchboard chat --last` and --session go on with a session.' },
  'cli:doctor:advice': {
    source: CLI,
    behaviour: '`switchboard doctor` checks ports, data, sandbox, model, upstream and Node, and says what to do.',
  },
  'cli:status:glance': {
    source: CLI,
    behaviour: '`switchboard status` says how hub and agent are, and ends with 1 when something is wrong.',
  },
  'cli:rotate:token': {
    source: CLI,
    behaviour: '`switchboard rotate` prints a new token, and the old one stops working.',
  },
  'cli:messages:why': {
    source: CLI,
    behaviour: '`switchboard messages` shows what came, where it went and why.',
  },
  'cli:letters:replay': {
    source: CLI,
    behaviour: '`switchboard dead-letters` lists, replays and discards.',
  },
  'cli:json:everywhere': {
    source: CLI,
    behaviour: 'With --json every command that tells something prints JSON alone.',
  },
  'cli:completion:shells': {
    source: CLI,
    behaviour: '`switchboard completion` prints a script that bash, zsh or fish complete from.',
  },
  'cli:backup:while-running': {
    source: 'issue 5: Build 5, packaging',
    behaviour: '`switchboard backup` copies a data directory while everything runs, and what it wrote can be run on.',
  },
} as const satisfies Requirements
