import pc from 'picocolors'

const QUIET_MS = 1_000
const FRAME_MS = 100
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

/** Waits for `work`; once that takes longer than a second a person at a terminal sees that it goes on. */
export async function withProgress<T>(says: string, work: Promise<T>): Promise<T> {
  if (!process.stderr.isTTY) return work
  const startedAt = performance.now()
  let shown = false
  const timer = setInterval(() => {
    const ms = performance.now() - startedAt
    if (ms < QUIET_MS) return
    shown = true
    const frame = FRAMES[Math.floor(ms / FRAME_MS) % FRAMES.length]
    process.stderr.write(`\r\u001b[2K${pc.cyan(frame)} ${says} ${pc.dim(`${Math.floor(ms / 1000)} s`)}`)
  }, FRAME_MS)
  try {
    return await work
  } finally {
    clearInterval(timer)
    if (shown) process.stderr.write('\r\u001b[2K')
  }
}
