import { Type } from 'typebox'
import { defineTool, done } from './define-tool.ts'

const MAX_ENTRIES = 1_000

/** Lists a folder. */
export const listDir = defineTool({
  name: 'list_dir',
  description: 'Lists the files and folders in a folder of the workspace, by name; folders end with `/`.',
  input: Type.Object({
    path: Type.Optional(
      Type.String({ description: 'The folder, relative to the workspace; the workspace itself if not given.' }),
    ),
  }),
  readOnly: true,
  async run({ path = '.' }, { workspace }) {
    const names = await workspace.files.list(path === '' ? '.' : path)
    if (names.length === 0) return done('(The folder is empty.)')
    const more = names.length > MAX_ENTRIES ? `\n(${names.length - MAX_ENTRIES} more; find them with glob.)` : ''
    return done(names.slice(0, MAX_ENTRIES).join('\n') + more)
  },
})
