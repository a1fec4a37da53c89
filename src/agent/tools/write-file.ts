import { Type } from 'typebox'
import { AppError } from '../../kit/errors.ts'
import type { Workspace } from '../workspace/port.ts'
import { defineTool, done, refused } from './define-tool.ts'
import { MAX_FILE_BYTES } from './text-file.ts'
import { seenFiles, withFileLock } from './tool-state.ts'

/** Writes a whole file. */
export const writeFile = defineTool({
  name: 'write_file',
  description:
    'Writes a whole text file in the workspace, new or in place of the old one, and makes the folders above it. ' +
    'To change a part of a file use edit_file or apply_patch.',
  input: Type.Object({
    path: Type.String({ minLength: 1, description: 'The file, relative to the workspace.' }),
    content: Type.String({ description: 'All of its text.' }),
  }),
  readOnly: false,
  async run({ path, content }, { workspace, state }) {
    const bytes = Buffer.from(content)
    if (bytes.length > MAX_FILE_BYTES)
      return refused(`The text is longer than ${MAX_FILE_BYTES} bytes; write it in parts.`)
    const seen = seenFiles(state, workspace)
    return withFileLock(workspace, path, async () => {
      const before = await readIfThere(workspace, path)
      if (before !== null && seen.isStale(path, before)) {
        seen.forget(path)
        return refused(
          `${path} has changed since you last saw it, by a command or by somebody else. Nothing was written. Read it again; ` +
            'if it is still to be replaced, write it again.',
        )
      }
      await workspace.files.write(path, bytes)
      seen.note(path, bytes)
      return done(`${before === null ? 'Made' : 'Replaced'} ${path} (${bytes.length} bytes).`)
    })
  },
})

/** null when it is not there, or too large to have been seen. */
async function readIfThere({ files }: Workspace, path: string): Promise<Buffer | null> {
  try {
    return await files.read(path, MAX_FILE_BYTES)
  } catch (error) {
    if (error instanceof AppError && (error.code === 'not_found' || error.code === 'too_large')) return null
    throw error
  }
}
