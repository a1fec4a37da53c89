const TIME_SHIFT = 22n
const LOW_BITS = 2 ** 22

/**
 * Ids as the real service gives them: milliseconds shifted by 22 bits, about 7.4e18, always growing, so a restarted
 * process never repeats one. All are odd, so that none fits a double and every reader that rounds is found out.
 */
export function messageIds(now: () => number): () => string {
  let last = 0n
  return () => {
    const low = Math.floor(Math.random() * LOW_BITS) | 1
    const fromTime = (BigInt(Math.floor(now())) << TIME_SHIFT) | BigInt(low)
    last = fromTime > last ? fromTime : last + 2n
    return last.toString()
  }
}
