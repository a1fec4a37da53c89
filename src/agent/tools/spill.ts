import { randomBytes } from 'node:crypto'
import type { Workspace } from '../workspace/port.ts'
import { cutMiddle, type Limits } from './truncate.ts'

/** Where texts are kept that were too long to be shown; a folder in the workspace, so that the tools can read it. */
export const OUTPUT_FOLDER = '.switchboard-output'

const MAX_KEPT = 50
const OWN_NAME = /^[0-9a-z]{9}-[0-9a-f]{8}\.txt$/

/** `text` if it fits, else its beginning and end, and the name of the file that has all of it. */
export async function fitOutput(text: string, limits: Limits, workspace: Workspace, now: number): Promise<string> {
  const cut = cutMiddle(text, limits)
  if (cut === null) return text
  const path = await keep(text, workspace, now)
  const where =
    path === null
      ? 'The whole could not be kept.'
      : `The whole is in ${path}: read_file (offset, limit) and grep can look into it.`
  return `${cut.head}\n\n… ${cut.lines} lines (${cut.bytes} bytes) left out. ${where} …\n\n${cut.tail}`
}

async function keep(text: string, { files }: Workspace, now: number): Promise<string | null> {
  // Names that begin with the time are sorted by age.
  const path = `${OUTPUT_FOLDER}/${now.toString(36).padStart(9, '0')}-${randomBytes(4).toString('hex')}.txt`
  try {
    // Not for the user's own history of versions.
    if ((await files.stat(`${OUTPUT_FOLDER}/.gitignore`)) === null)
      await files.write(`${OUTPUT_FOLDER}/.gitignore`, Buffer.from('*\n'))
    await files.write(path, Buffer.from(text))
    const kept = (await files.list(OUTPUT_FOLDER)).filter((name) => OWN_NAME.test(name))
    for (const name of kept.slice(0, -MAX_KEPT)) await files.remove(`${OUTPUT_FOLDER}/${name}`)
    return path
  } catch {
    return null
  }
}
