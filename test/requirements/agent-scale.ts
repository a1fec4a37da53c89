import type { Requirements } from './requirement.ts'

const BUILD = 'issue 6: Build 2'
const OPERATIONS = 'issue 6: Build 3'
const SHOWN = 'issue 6: What must show'
const NODES = 'design/agent-decisions.md: Several nodes'
const PLANS = 'design/agent-decisions.md: Plans and leases'

/** Several agent servers on one Redis and one object store. */
export const agentScale = {
  'agentscale:sessions:shared': {
    source: NODES,
    behaviour: 'What one node makes or changes all nodes show: sessions, runs, transcripts, idempotency keys.',
  },
  'agentscale:events:anywhere': {
    source: NODES,
    behaviour:
      'A run’s events can be read on any node while they come, and a reader goes on at another by its last id.',
  },
  'agentscale:cancel:anywhere': {
    source: NODES,
    behaviour: 'A cancel or a deletion given to any node ends the run where it works.',
  },
  'agentscale:plans:anywhere': {
    source: PLANS,
    behaviour: 'A plan proposed on one node is approved on another, also after the first one died.',
  },
  'agentscale:tickets:anywhere': {
    source: BUILD,
    behaviour: 'A stream ticket of one node opens the stream on another.',
  },
  'agentscale:owner:dies': {
    source: NODES,
    behaviour:
      'A run whose node was killed ends with one error and one done (Interrupted) within 30 seconds; another can begin.',
  },
  'agentscale:owner:sleeps': {
    source: SHOWN,
    behaviour: 'A node that wakes up after it lost its claim writes nothing, and goes on to serve.',
  },
  'agentscale:redis:away': {
    source: SHOWN,
    behaviour:
      'While Redis is away calls get 503 and /ready says why; afterwards all goes on by itself, with one done for each run.',
  },
  'agentscale:redis:settings': {
    source: BUILD,
    behaviour: 'A wrong --redis-url, or one beside --data-dir, is refused at the start without showing a password.',
  },
  'agentscale:restart:rolling': {
    source: OPERATIONS,
    behaviour: 'A node that is stopped ends its runs with a done, and its readers go on at another node.',
  },
  'agentscale:chaos:one-done': {
    source: SHOWN,
    behaviour:
      'With nodes killed and frozen at random, Redis restarted and the object store cut off for a while, every accepted run has exactly one done, soon, and every reader sees each event once and in order.',
  },
  'agentscale:archive:moved': {
    source: BUILD,
    behaviour:
      'With --s3-url a session that rests is moved into objects, and is read, continued, forked and deleted as before, on any node.',
  },
  'agentscale:archive:away': {
    source: SHOWN,
    behaviour:
      'While the object store is away what lies there gets 503, /ready says so, and the rest works; it can be read again as soon as it is back.',
  },
  'agentscale:archive:settings': {
    source: BUILD,
    behaviour:
      'A wrong --s3-url, one with credentials in it, or one beside --data-dir is refused at the start with what to do.',
  },
  'agentscale:alone:contract': {
    source: NODES,
    behaviour:
      'With --s3-url alone one server keeps everything in the bucket: what a start builds from it is what was there.',
  },
  'agentscale:alone:killed': {
    source: BUILD,
    behaviour:
      'Killed at any moment and started again on its bucket, a server has every accepted run with one done, every event and every transcript, and ids go on rising.',
  },
  'agentscale:alone:second': {
    source: NODES,
    behaviour:
      'A second server on a bucket is refused and told who holds it while the first gives signs of life, and takes over when it gives none, or has gone.',
  },
  'agentscale:alone:overtaken': {
    source: NODES,
    behaviour: 'A server whose bucket was taken over writes nothing more, says so in /ready, and ends.',
  },
  'agentscale:alone:doubt': {
    source: SHOWN,
    behaviour:
      'A write that was told to have failed and yet arrived is done once, whoever repeats it; one that did not arrive is never done.',
  },
  'agentscale:alone:away': {
    source: SHOWN,
    behaviour:
      'While the bucket is away writes get 503, /ready says why and reading goes on; afterwards all goes on by itself, with one done for each run.',
  },
  'agentscale:alone:snapshot': {
    source: BUILD,
    behaviour:
      'Now and then the whole is kept as one snapshot and the records before it are removed; a start needs that and the few behind it.',
  },
} as const satisfies Requirements
