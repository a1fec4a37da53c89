import { Type } from 'typebox'
import { defineTool, done, refused } from './define-tool.ts'
import { globMatcher } from './glob-match.ts'
import { ignoring } from './ignore.ts'
import { fromRoot } from './tool-state.ts'

const DEFAULT_LIMIT = 200
const MAX_WALKED = 200_000

/** Finds files by name. */
export const glob = defineTool({
  name: 'glob',
  description:
    'Finds files of the workspace by a pattern such as `**/*.ts`, `src/**/test_*.py` or `*.{md,txt}` (without `/`: in any folder). ' +
    'Leaves out what .gitignore names, .git and node_modules, unless `path` is such a folder.',
  input: Type.Object({
    pattern: Type.String({ minLength: 1, maxLength: 1_000, description: 'Relative to `path`.' }),
    path: Type.Optional(Type.String({ description: 'The folder to search, relative to the workspace.' })),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 2_000, description: `How many to show; ${DEFAULT_LIMIT} if not given.` }),
    ),
  }),
  readOnly: true,
  async run({ pattern, path = '.', limit = DEFAULT_LIMIT }, { workspace, signal }) {
    const start = fromRoot(workspace, path)
    const matches = globMatcher(pattern)
    const rules = ignoring(workspace.files)
    await rules.start(start)
    const found: string[] = []
    let walked = 0
    for await (const file of workspace.files.walk(start, signal, rules.enter)) {
      walked += 1
      if (matches(below(file.path, start)) && !rules.isIgnored(file.path)) found.push(file.path)
      if (found.length > limit || walked > MAX_WALKED) break
    }
    if (signal.aborted) return refused('Cancelled.')
    if (found.length === 0) return done(`No file matches ${JSON.stringify(pattern)}.`)
    const more = found.length > limit ? `\n(More than ${limit}; narrow the pattern or the path.)` : ''
    return done(found.slice(0, limit).join('\n') + more)
  },
})

/** The path from the folder that is searched. */
function below(path: string, start: string): string {
  return path.startsWith(`${start}/`) ? path.slice(start.length + 1) : path
}
