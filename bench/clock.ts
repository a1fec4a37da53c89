/** Microseconds on a clock that all processes of this machine share. */
export function sharedMicroseconds(): number {
  return Number(process.hrtime.bigint() / 1000n)
}
