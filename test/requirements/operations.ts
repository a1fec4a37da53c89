import type { Requirements } from './requirement.ts'

const PACKAGING = 'issue 5: Build 5, packaging'
const SHOW = 'issue 5: What must show, npm pack'
const HYGIENE = 'issue 7: Build 5, supply chain and hygiene'

/** The package, its deployment, and what operators read. */
export const operations = {
  'package:pack:contents': {
    source: PACKAGING,
    behaviour: '`npm pack` builds first and packs the program with its pages, the clients and the docs, and no source.',
  },
  'package:install:runs': {
    source: SHOW,
    behaviour: 'Installed in an empty folder without any script, `npx switchboard up` runs with nothing else.',
  },
  'package:dependencies:run-time': {
    source: HYGIENE,
    behaviour: 'Whatever the program imports is among its dependencies at run time.',
  },
  'package:dependencies:reasons': {
    source: 'issue 5: What must show, install',
    behaviour: 'Every dependency has a line that says what it is for.',
  },
  'package:files:permissions': {
    source: HYGIENE,
    behaviour: "Whatever is written into the data directory, the agent's own files apart, is for the owner alone.",
  },
  'deploy:settings:known': {
    source: PACKAGING,
    behaviour: 'Container files and systemd units name only settings and commands that there are.',
  },
  'deploy:dashboard:metrics': {
    source: PACKAGING,
    behaviour: 'The Grafana dashboard asks only for metrics and labels that the services have.',
  },
  'deploy:nginx:long-polls': {
    source: 'issue 6: Build 3, operations',
    behaviour: 'The nginx configurations hold no answer back, and wait longer than polls do and sockets are kept.',
  },
  'docs:decisions:table': {
    source: 'issue 7: Build 6, docs against behaviour',
    behaviour: 'Each decision has a number of its own and stands in the table once, by its title.',
  },
} as const satisfies Requirements
