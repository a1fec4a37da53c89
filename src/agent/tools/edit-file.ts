import { Type } from 'typebox'
import { defineTool, done, refused } from './define-tool.ts'
import { editText } from './edit-text.ts'
import { nearestRegion } from './nearest-region.ts'
import { decodeText, encodeText, MAX_FILE_BYTES, numbered } from './text-file.ts'
import { seenFiles, withFileLock } from './tool-state.ts'

const SHOWN_LINES = 30

/** Replaces a piece of a file. */
export const editFile = defineTool({
  name: 'edit_file',
  description:
    'Replaces old_string by new_string in a text file. old_string must match exactly one place; give lines around it to make ' +
    'it unique. Other spaces at line ends and another indentation of whole lines are overlooked.',
  input: Type.Object({
    path: Type.String({ minLength: 1, description: 'The file, relative to the workspace.' }),
    old_string: Type.String({ description: 'The text to replace, as it stands in the file, without line numbers.' }),
    new_string: Type.String({ description: 'The text to put there.' }),
    replace_all: Type.Optional(Type.Boolean({ description: 'Replace every place, not just one.' })),
  }),
  readOnly: false,
  async run({ path, old_string: oldText, new_string: newText, replace_all: all = false }, { workspace, state }) {
    const seen = seenFiles(state, workspace)
    return withFileLock(workspace, path, async () => {
      const bytes = await workspace.files.read(path, MAX_FILE_BYTES)
      const file = decodeText(bytes)
      if (file === null) return refused(`${path} is not text in UTF-8, so it cannot be edited.`)
      if (seen.isStale(path, bytes)) {
        // What is shown now is what was seen: the next try counts.
        seen.note(path, bytes)
        const region = nearestRegion(file.text.replaceAll('\r\n', '\n'), oldText)
        const now = region === null ? 'Read it again.' : `Where old_string belongs there is now:\n${region}`
        return refused(`${path} has changed since you last saw it. Nothing was edited. ${now}`)
      }
      const edited = editText(file.text, { oldText, newText, all })
      if (!edited.ok) return refused(`${path}: ${edited.problem}`)
      const written = encodeText({ text: edited.text, bom: file.bom })
      await workspace.files.write(path, written)
      seen.note(path, written)
      const how = edited.kind === 'exact' ? '' : `, overlooking ${edited.kind}`
      const what = edited.count === 1 ? 'Edited' : `Edited ${edited.count} places of`
      return done(`${what} ${path} (line ${edited.line}${how}). There is now:\n${excerpt(edited.text, edited)}`)
    })
  },
})

function excerpt(text: string, { line, endLine }: { line: number; endLine: number }): string {
  const from = Math.max(1, line - 2)
  const to = Math.min(endLine + 2, from + SHOWN_LINES)
  return numbered(text.split(/\r?\n/).slice(from - 1, to), from)
}
