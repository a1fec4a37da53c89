import { Type } from 'typebox'
import { AppError, errorText } from '../../kit/errors.ts'
import { defineTool, done, refused } from './define-tool.ts'
import { globMatcher } from './glob-match.ts'
import { type FileHits, type GrepFile, type GrepWorker, startGrepWorker } from './grep-worker.ts'
import { type Ignoring, ignoring } from './ignore.ts'
import type { ToolContext } from './port.ts'
import { fromRoot } from './tool-state.ts'

const DEFAULT_HITS = 100
const MAX_LINE_CHARS = 400
const MAX_FILE_BYTES = 4 * 1024 * 1024
const BATCH_BYTES = 1024 * 1024
const BATCH_FILES = 32
const BATCH_LIMIT_MS = 5_000
const SEARCH_LIMIT_MS = 30_000

/** Searches the text of files. */
export const grep = defineTool({
  name: 'grep',
  description:
    'Searches the files of the workspace, line by line, for a JavaScript regular expression, and shows `path:line: text`. ' +
    'Leaves out binary files, what .gitignore names, .git and node_modules, unless `path` is one of these.',
  input: Type.Object({
    pattern: Type.String({
      minLength: 1,
      maxLength: 2_000,
      description: 'The regular expression, for one line at a time.',
    }),
    path: Type.Optional(Type.String({ description: 'The folder or file to search, relative to the workspace.' })),
    glob: Type.Optional(Type.String({ maxLength: 1_000, description: 'Only files that match, such as `*.ts`.' })),
    ignore_case: Type.Optional(Type.Boolean()),
    context: Type.Optional(Type.Integer({ minimum: 0, maximum: 20, description: 'Lines to show around each hit.' })),
    files_only: Type.Optional(Type.Boolean({ description: 'Show only the names of the files.' })),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 2_000, description: `How many hits; ${DEFAULT_HITS} if not given.` }),
    ),
  }),
  readOnly: true,
  async run(input, context) {
    const { limit = DEFAULT_HITS, files_only: filesOnly = false } = input
    const pattern = readPattern(input.pattern, input.ignore_case ?? false)
    if (typeof pattern === 'string') return refused(pattern)
    const around = filesOnly ? 0 : (input.context ?? 0)
    const worker = startGrepWorker({ ...pattern, context: around, maxLineChars: MAX_LINE_CHARS }, BATCH_LIMIT_MS)
    try {
      const search = {
        path: fromRoot(context.workspace, input.path ?? '.'),
        glob: input.glob,
        limit,
        perFile: filesOnly,
      }
      const { found, complete } = await searchAll(worker, search, context)
      if (context.signal.aborted) return refused('Cancelled.')
      return done(show(found, { filesOnly, context: around, limit, complete }))
    } finally {
      await worker.close()
    }
  },
})

/** `(?i)` in front is how other tools say it. */
function readPattern(given: string, ignoreCase: boolean): { source: string; flags: string } | string {
  const inline = given.startsWith('(?i)')
  const source = inline ? given.slice(4) : given
  const flags = ignoreCase || inline ? 'i' : ''
  try {
    new RegExp(source, flags)
    return { source, flags }
  } catch (error) {
    return `The pattern is no regular expression of JavaScript: ${errorText(error)}. Put a \\ before characters that are meant as such.`
  }
}

interface Search {
  path: string
  glob: string | undefined
  limit: number
  /** One hit per file is enough. */
  perFile: boolean
}

async function searchAll(worker: GrepWorker, search: Search, context: ToolContext) {
  const { workspace, signal } = context
  const until = performance.now() + SEARCH_LIMIT_MS
  const found: FileHits[] = []
  let hits = 0
  for await (const batch of batches(search, context, ignoring(workspace.files))) {
    const files = await Promise.all(batch.map((path) => readFile(context, path)))
    for (const group of search.perFile ? files.map((file) => [file]) : [files]) {
      const room = search.perFile ? 1 : search.limit + 1 - hits
      const some = await worker.search(
        group.filter((file) => file !== null),
        room,
      )
      found.push(...some)
      hits += some.reduce((sum, file) => sum + file.hits, 0)
      if (hits > search.limit) return { found, complete: false }
    }
    if (signal.aborted || performance.now() > until) return { found, complete: false }
  }
  return { found, complete: true }
}

/** The paths to search, a few at a time. */
async function* batches(search: Search, { workspace, signal }: ToolContext, rules: Ignoring): AsyncGenerator<string[]> {
  const matches = search.glob === undefined ? () => true : globMatcher(search.glob)
  await rules.start(search.path)
  let batch: string[] = []
  let bytes = 0
  for await (const file of workspace.files.walk(search.path, signal, rules.enter)) {
    if (file.bytes > MAX_FILE_BYTES || !matches(file.path)) continue
    if (file.path !== search.path && rules.isIgnored(file.path)) continue
    batch.push(file.path)
    bytes += file.bytes
    if (bytes < BATCH_BYTES && batch.length < BATCH_FILES) continue
    yield batch
    batch = []
    bytes = 0
  }
  if (batch.length > 0) yield batch
}

/** A file that has gone or may not be read has no hits. */
async function readFile({ workspace }: ToolContext, path: string): Promise<GrepFile | null> {
  try {
    return { path, bytes: await workspace.files.read(path, MAX_FILE_BYTES) }
  } catch (error) {
    if (error instanceof AppError) return null
    throw error
  }
}

interface Showing {
  filesOnly: boolean
  context: number
  limit: number
  complete: boolean
}

function show(found: FileHits[], { filesOnly, context, limit, complete }: Showing): string {
  const more = complete ? '' : '\n(There may be more: the limit was reached. Narrow the pattern, `path` or `glob`.)'
  if (found.length === 0) return complete ? 'No line matches.' : `No line matched before the time was up.${more}`
  if (filesOnly)
    return (
      found
        .slice(0, limit)
        .map((file) => file.path)
        .join('\n') + more
    )
  let room = limit
  const shown: string[] = []
  for (const { path, lines } of found) {
    let before: number | undefined
    for (const { number, text, hit } of lines) {
      if (hit && room === 0) break
      if (hit) room -= 1
      if (context > 0 && before !== number - 1 && shown.length > 0) shown.push('--')
      shown.push(hit ? `${path}:${number}: ${text}` : `${path}-${number}- ${text}`)
      before = number
    }
  }
  return shown.join('\n') + more
}
