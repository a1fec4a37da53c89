import type { Requirements } from './requirement.ts'

/** The web pages. */
export const web = {
  'web:pages:policy': {
    source: 'issue 5: Build 3',
    behaviour: 'Pages load nothing from elsewhere and allow no inline script or style.',
  },
  'web:pages:assets': {
    source: 'issue 5: Build 3',
    behaviour:
      'Assets have hashed names and are kept for long, pages are not kept, and no path leads out of the folder.',
  },
  'web:pages:accessible': {
    source: 'issue 5: What must show',
    behaviour: 'On every page axe finds no serious problem, in light and in dark.',
  },
  'web:pages:markup': {
    source: 'issue 5: What must show',
    behaviour: 'Names, labels, users, texts, tool output and file names with markup appear as text on every page.',
  },
  'web:pages:phone': {
    source: 'issue 5: Build 3',
    behaviour: 'On a phone nothing is wider than the page.',
  },
  'web:panel:line': {
    source: 'issue 5: Build 3',
    behaviour: 'The panel says how the line to the messaging service is, why, and what a person has to do.',
  },
  'web:panel:clients': {
    source: 'issue 5: Build 3',
    behaviour:
      'The panel registers, rotates, deletes clients and sets default and fallback; a token is shown once, with a configuration to paste.',
  },
  'web:panel:messages': {
    source: 'issue 5: Build 3',
    behaviour: 'The panel shows conversations and messages with state, route and reason.',
  },
  'web:panel:letters': {
    source: 'issue 5: Build 3',
    behaviour: 'The panel delivers a dead letter to a client, or discards it.',
  },
  'web:panel:route': {
    source: 'issue 5: Build 3',
    behaviour: 'The panel tells where a text would go, and why, without sending it.',
  },
  'web:panel:live': {
    source: 'issue 5: Build 3',
    behaviour: 'The panel follows what happens without being loaded again; an unchanged look is a 304.',
  },
  'web:panel:login': {
    source: 'issue 5: Build 3',
    behaviour:
      'On the panel an account whose login has expired gets a QR code to scan, and the code that the phone shows.',
  },
  'web:panel:pairings': {
    source: 'issue 5: Build 3',
    behaviour: 'A client that asks to be paired is let in by name on the panel, or rejected.',
  },
  'web:console:sessions': {
    source: 'issue 5: Build 3',
    behaviour: 'The console lists sessions, makes, forks, renames, deletes and replays them.',
  },
  'web:console:run': {
    source: 'issue 5: Build 3',
    behaviour: 'The console shows a run: text, tools with arguments and output, usage.',
  },
  'web:console:live': {
    source: 'issue 5: Build 3',
    behaviour: 'A run streams into the console while it goes on, whoever started it, and can be stopped there.',
  },
  'web:console:plan': {
    source: 'issue 5: Build 3',
    behaviour: 'A plan is approved on the console, with changes, or rejected with a reason.',
  },
  'web:console:keys': {
    source: 'issue 5: What must show',
    behaviour: 'With --auth-keys the console shows nothing before a key was given, and works with one.',
  },
  'web:chat:talk': {
    source: 'issue 5: Build 3',
    behaviour:
      'The chat page has several users side by side, who send texts, images and files and see typing and answers.',
  },
  'web:chat:trouble': {
    source: 'issue 5: Build 3',
    behaviour: 'Buttons on the chat page cause and end faults, and scan the QR code of a login.',
  },
  'web:chat:front': {
    source: 'issue 5: Build 3',
    behaviour:
      'A browser gets the chat page at /, everybody else the list of calls; the page waits for news with one call.',
  },
  'web:story:whole': {
    source: 'issue 5: What must show',
    behaviour:
      'Chat, console and panel tell one story: an answer with its tool call, its route and reason; a client registered, rotated, deleted; a dead letter replayed; a fault seen and mended; a plan approved with an edit.',
  },
} as const satisfies Requirements
