import type { Requirements } from './requirement.ts'

const SOURCE = 'issue 6: Build 1, What must show; design/architecture.md: Why these engines'

/** Several hubs on one Postgres. */
export const nodes = {
  'nodes:delivery:nothing-lost': {
    source: SOURCE,
    behaviour:
      'Whatever node is killed or frozen, every message is delivered, and twice only what was in flight at that moment.',
  },
  'nodes:upstream:one-polls': { source: SOURCE, behaviour: 'One node at a time polls the messaging service.' },
  'nodes:http:any-node-serves': {
    source: SOURCE,
    behaviour: 'Every node answers every call: the one that leads itself, the others by passing it on.',
  },
  'nodes:lease:takeover': {
    source: SOURCE,
    behaviour: 'When the node that leads falls silent another leads as soon as its lease has run out.',
  },
  'nodes:lease:fenced': {
    source: SOURCE,
    behaviour: 'A node that wakes up after it has lost the lease writes nothing more.',
  },
  'nodes:lease:asleep': {
    source: SOURCE,
    behaviour:
      'A node that wakes up after its lease has run out answers nobody and calls the service no more, before anybody has told it.',
  },
  'nodes:operation:rolling-restart': {
    source: SOURCE,
    behaviour: 'Nodes stopped and started one after the other cost clients a poll that is asked again, and no error.',
  },
  'nodes:store:same-contract': {
    source: SOURCE,
    behaviour: 'A store on Postgres keeps every promise that the one on SQLite keeps.',
  },
  'nodes:store:database-restarts': {
    source: SOURCE,
    behaviour: 'The database may be killed and come back: nothing is lost, nothing is done twice.',
  },
  'nodes:database:restarts': {
    source: SOURCE,
    behaviour:
      'While the database is away no node is ready and calls get a 503 that says why; no node ends, and all goes on by itself when it is back.',
  },
  'nodes:store:snapshots': {
    source: SOURCE,
    behaviour: 'A new copy starts from a snapshot, and what two snapshots hold is gone from the log.',
  },
  'nodes:start:listen-works': {
    source: SOURCE,
    behaviour: 'A node looks at its start whether notifications arrive, and refuses to run where they do not.',
  },
  'nodes:start:database-there': {
    source: SOURCE,
    behaviour: 'A database that does not answer is named in the error, without its password.',
  },
  'nodes:config:upstream-needed': {
    source: SOURCE,
    behaviour: 'Hubs that share a database are told to share a messaging service too.',
  },
  'nodes:migrate:copies': {
    source: SOURCE,
    behaviour: '`switchboard migrate` copies a data directory into an empty database; a used one is refused.',
  },
} as const satisfies Requirements
