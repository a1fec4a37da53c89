import { basename, dirname } from 'node:path'
import { Type } from 'typebox'
import { AppError } from '../../kit/errors.ts'
import type { Workspace } from '../workspace/port.ts'
import { defineTool, done, refused } from './define-tool.ts'
import type { ToolOutput } from './port.ts'
import { decodeText, imageKind, isBinary, MAX_FILE_BYTES, numbered } from './text-file.ts'
import { seenFiles } from './tool-state.ts'
import { OUTPUT_LIMITS } from './truncate.ts'

const DEFAULT_LINES = OUTPUT_LIMITS.maxLines - 10
const MAX_LINE_CHARS = 2_000
/** Below the registry's limit: what is shown is never cut a second time. */
const MAX_SHOWN_BYTES = OUTPUT_LIMITS.maxBytes - 2_048
const MAX_SUGGESTIONS = 5

/** Reads a text file with line numbers. */
export const readFile = defineTool({
  name: 'read_file',
  description:
    'Reads a text file of the workspace and shows its lines, each after its number and a tab (both are not part of the file). ' +
    'Shows up to 1990 lines or 48 KiB at once; go on with `offset`.',
  input: Type.Object({
    path: Type.String({ minLength: 1, description: 'The file, relative to the workspace.' }),
    offset: Type.Optional(Type.Integer({ minimum: 1, description: 'The first line to show, from 1.' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, description: 'How many lines to show.' })),
  }),
  readOnly: true,
  async run({ path, offset = 1, limit = DEFAULT_LINES }, { workspace, state }) {
    let bytes: Buffer
    try {
      bytes = await workspace.files.read(path, MAX_FILE_BYTES)
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found')
        return refused(`${error.message}${await suggest(workspace, path)}`)
      throw error
    }
    const text = textOf(bytes)
    if (text === null) return done(describeBinary(path, bytes))
    seenFiles(state, workspace).note(path, bytes)
    return show(text, offset, Math.min(limit, DEFAULT_LINES))
  },
})

/** Text in UTF-8, UTF-16 with its mark, or Latin-1; null when it is no text. */
function textOf(bytes: Buffer): string | null {
  const utf8 = decodeText(bytes)
  if (utf8 !== null) return utf8.text
  const mark = bytes.toString('latin1', 0, 2)
  if (mark === '\xff\xfe') return new TextDecoder('utf-16le').decode(bytes)
  if (mark === '\xfe\xff') return new TextDecoder('utf-16be').decode(bytes)
  return isBinary(bytes) || imageKind(bytes) !== null ? null : bytes.toString('latin1')
}

function describeBinary(path: string, bytes: Buffer): string {
  const image = imageKind(bytes)
  const what = image === null ? 'a binary file' : `a picture (${image})`
  return `${path} is ${what} of ${bytes.length} bytes; it cannot be shown as text.`
}

function show(text: string, offset: number, limit: number): ToolOutput {
  const lines = text.split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  if (lines.length === 0) return done('(The file is empty.)')
  if (offset > lines.length) return refused(`The file has ${lines.length} lines; there is no line ${offset}.`)
  const shown: string[] = []
  let bytes = 0
  for (const line of lines.slice(offset - 1, offset - 1 + limit)) {
    const short = line.length > MAX_LINE_CHARS ? `${line.slice(0, MAX_LINE_CHARS)}… (${line.length} characters)` : line
    bytes += Buffer.byteLength(short) + 8
    if (bytes > MAX_SHOWN_BYTES) break
    shown.push(short)
  }
  const last = offset - 1 + shown.length
  const more =
    last < lines.length ? `\n(Lines ${offset} to ${last} of ${lines.length}; go on with offset ${last + 1}.)` : ''
  return done(numbered(shown, offset) + more)
}

/** Files of the same folder that may have been meant. */
async function suggest({ files }: Workspace, path: string): Promise<string> {
  const wanted = basename(path).toLowerCase()
  const stem = wanted.replace(/\.[^.]*$/, '')
  const names = await files.list(dirname(path)).catch(() => [])
  const near = names
    .filter((name) => name.toLowerCase() === wanted || (stem.length > 2 && name.toLowerCase().startsWith(stem)))
    .slice(0, MAX_SUGGESTIONS)
  return near.length === 0 ? '' : ` Near it there is: ${near.join(', ')}.`
}
