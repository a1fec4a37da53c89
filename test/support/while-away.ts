import { setTimeout as pause } from 'node:timers/promises'

/** `CHAOS=long`: what `npm test` shows in short is shown in full. */
export const LONG_CHAOS = process.env.CHAOS === 'long'

const AWAY_MS = LONG_CHAOS ? 30_000 : 0
const LOOK_EVERY_MS = 500

/** Checks what is so while something is away: once, and in the long form again and again for half a minute. */
export async function whileAway(check: () => Promise<void>): Promise<void> {
  const until = Date.now() + AWAY_MS
  for (;;) {
    await check()
    if (Date.now() >= until) return
    await pause(LOOK_EVERY_MS)
  }
}
