import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
/** A browser takes its time on a busy machine. */
export const LAUNCH_MS = 60_000

/** Starts the Chromium of this machine. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: findChromium(), args: ARGS, timeout: LAUNCH_MS })
}

/** `TEST_CHROMIUM`, or the first Chromium on the PATH, as scripts/test-setup.mjs looks for it. */
function findChromium(): string {
  const given = process.env.TEST_CHROMIUM
  if (given) return given
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  const paths = ['chromium', 'chromium-browser', 'google-chrome'].flatMap((name) =>
    folders.map((folder) => join(folder, name)),
  )
  const found = paths.find(isProgram)
  if (found === undefined) throw new Error('There is no Chromium on the PATH; install one or set TEST_CHROMIUM.')
  return found
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
