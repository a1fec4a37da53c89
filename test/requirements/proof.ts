import type { Requirements } from './requirement.ts'

const ENDURANCE = 'issue 7: Build 3, endurance'

const HOSTILE = 'issue 7: Build 4, hostile input'

/** What endurance and hostile input must show. */
export const proof = {
  'proof:soak:nothing-lost': {
    source: ENDURANCE,
    behaviour: 'Under mixed load, faults and kills every message, every answer and every run arrives.',
  },
  'proof:soak:nothing-grows': {
    source: ENDURANCE,
    behaviour: 'After it memory, handles, descriptors and files are where they were after warm-up.',
  },
  'proof:fuzz:documented-only': {
    source: HOSTILE,
    behaviour: 'Whatever is sent to hub and agent, the answer is one that is documented, and none of 500 and above.',
  },
  'proof:fuzz:unharmed': {
    source: HOSTILE,
    behaviour:
      'After hostile requests a server is healthy, its log and metrics are whole, and it holds no more than before.',
  },
  'proof:fuzz:refused-changes-nothing': {
    source: HOSTILE,
    behaviour: 'What a server holds after hostile requests is exactly what it said it accepted.',
  },
  'proof:fuzz:crowds': {
    source: HOSTILE,
    behaviour: 'Many connections that begin a request and never end it keep nobody else from being answered.',
  },
  'proof:start:bundled': {
    source: 'issue 3: What must show, 1',
    behaviour: 'What is built loads the schema library as one file, so that every command starts soon.',
  },
  'proof:start:lazy': {
    source: 'issue 7: Build 2, prefer removing work',
    behaviour: 'The program loads what a command needs when the command runs: help needs no schema, server or model.',
  },
} as const satisfies Requirements
