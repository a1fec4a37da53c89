import type { Requirements } from './requirement.ts'

const ENDURANCE = 'issue 7: Build 3, endurance'

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
} as const satisfies Requirements
