import type { Requirements } from './requirement.ts'

/** What speed and hygiene must show; endurance and hostile input have commands of their own, `npm run soak` and `npm run fuzz`. */
export const proof = {
  'proof:start:lazy': {
    source: 'issue 7: Build 2, prefer removing work',
    behaviour: 'The program loads what a command needs when the command runs: help needs no schema, server or model.',
  },
} as const satisfies Requirements
