import type { Requirements } from './requirement.ts'

/** Existing clients, unchanged: what the real bot protocol asks of the hub. */
export const wire = {
  'wire:clients:text': {
    source: 'issue 4: What must show, 1',
    behaviour: 'The published clients get texts and answer them through the hub.',
  },
  'wire:clients:typing': {
    source: 'issue 4: What must show, 1',
    behaviour: 'The published clients turn typing on and off and the user sees it.',
  },
  'wire:clients:image': {
    source: 'issue 4: What must show, 1',
    behaviour: 'An image comes to the published clients and goes back byte for byte.',
  },
  'wire:clients:restart': {
    source: 'issue 4: What must show, 1',
    behaviour:
      'When the client or the hub is killed in mid-conversation nothing is lost and nothing settled comes twice.',
  },
  'wire:clients:wrong-token': {
    source: 'issue 4: What must show, 1; reference/ilink-wire.md 2.3 rule 16',
    behaviour: 'With a wrong token the published clients live on, back off and keep their credentials.',
  },
  'wire:clients:idle': {
    source: 'issue 4: What must show, 1',
    behaviour: 'The published clients wait through empty answers and then still get what comes.',
  },
  'wire:clients:expired-login': {
    source: 'issue 4: What must show, 2; reference/ilink-wire.md 2.3 rule 15',
    behaviour:
      'When the upstream login expires the published clients poll on, /health names the action, and after a new login nothing is lost.',
  },
  'wire:media:pass-through': {
    source: 'issue 4: Build 3; reference/ilink-wire.md 2.3 rule 12',
    behaviour: 'Without the media relay, addresses and references of media pass through untouched.',
  },
  'wire:media:relay': {
    source: 'issue 4: Build 3',
    behaviour: 'With the media relay a client that reaches the hub alone uploads and downloads byte for byte.',
  },
  'wire:media:tickets': {
    source: 'issue 4: Build 3',
    behaviour: 'A media address of the hub cannot be guessed, changed, or used for another client or another place.',
  },
  'wire:media:limit': {
    source: 'issue 4: Build 3',
    behaviour: 'A file over 100 MiB is a 413, said or found out.',
  },
  'wire:media:checks': {
    source: 'issue 4: Build 3',
    behaviour:
      'An upload that cannot be the announced file, by length, padding or first bytes, is refused and never stored.',
  },
  'wire:media:memory': {
    source: 'issue 4: What must show, 4',
    behaviour: 'Media of 10 MB pass up and down with less than 32 MB more memory.',
  },
} as const satisfies Requirements
