import { Type } from 'typebox'
import { AppError } from '../../kit/errors.ts'
import type { Workspace } from '../workspace/port.ts'
import { defineTool, done, refused } from './define-tool.ts'
import { type PatchSection, parsePatch } from './patch-format.ts'
import { patchText } from './patch-text.ts'
import type { ToolOutput } from './port.ts'
import { decodeText, encodeText, MAX_FILE_BYTES } from './text-file.ts'
import { fromRoot, type SeenFiles, seenFiles, withFileLock } from './tool-state.ts'

/** Changes several files together. */
export const applyPatch = defineTool({
  name: 'apply_patch',
  description: `Changes one or more files together; when any part does not fit, nothing is changed. The form:
*** Begin Patch
*** Update File: src/a.ts
@@ function greet() {
 a line that stays
-a line that goes
+a line that comes
*** Add File: src/b.ts
+all lines of the new file
*** Delete File: src/c.ts
*** End Patch
Give about three lines that stay around every change, so that it fits one place; a line after @@ (optional) is one above the place. "*** Move to: path" after an Update line renames the file. Paths are relative to the workspace.`,
  input: Type.Object({ patch: Type.String({ minLength: 1, maxLength: MAX_FILE_BYTES, description: 'The patch.' }) }),
  readOnly: false,
  async run({ patch }, { workspace, state }) {
    const sections = parsePatch(patch)
    const paths = sections.flatMap((section) => pathsOf(section)).map((path) => fromRoot(workspace, path))
    const twice = paths.find((path, index) => paths.indexOf(path) !== index)
    if (twice !== undefined)
      return refused(`The patch names ${twice} twice; put all changes of a file into one section.`)
    return withLocks(workspace, paths.sort(), async () => {
      const changes: FileChange[] = []
      for (const section of sections) {
        const planned = await plan(workspace, section)
        if ('problem' in planned) return refused(`${section.path}: ${planned.problem} Nothing was changed.`)
        changes.push(...planned.changes)
      }
      await writeAll(workspace, changes, seenFiles(state, workspace))
      return done(`Done: ${sections.map(describe).join(', ')}.`)
    })
  },
})

/** A file before and after; null where it is not there. */
interface FileChange {
  path: string
  before: Buffer | null
  after: Buffer | null
}

type Planned = { changes: FileChange[] } | { problem: string }

function pathsOf(section: PatchSection): string[] {
  return section.kind === 'update' && section.moveTo !== null ? [section.path, section.moveTo] : [section.path]
}

/** In one order for all, so that two patches never wait for each other. */
function withLocks(workspace: Workspace, paths: string[], work: () => Promise<ToolOutput>): Promise<ToolOutput> {
  return paths.reduceRight((inner, path) => () => withFileLock(workspace, path, inner), work)()
}

async function plan(workspace: Workspace, section: PatchSection): Promise<Planned> {
  const { path } = section
  if (section.kind === 'add') {
    if ((await workspace.files.stat(path)) !== null) return { problem: 'it is there already; use an Update section.' }
    const text = section.lines.map((line) => `${line}\n`).join('')
    return { changes: [{ path, before: null, after: Buffer.from(text) }] }
  }
  const before = await workspace.files.read(path, MAX_FILE_BYTES)
  if (section.kind === 'delete') return { changes: [{ path, before, after: null }] }
  const file = decodeText(before)
  if (file === null) return { problem: 'it is not text in UTF-8.' }
  const patched = patchText(file.text, section.hunks)
  if (!patched.ok) return patched
  const after = encodeText({ text: patched.text, bom: file.bom })
  if (section.moveTo === null) return { changes: [{ path, before, after }] }
  if ((await workspace.files.stat(section.moveTo)) !== null) return { problem: `${section.moveTo} is there already.` }
  return {
    changes: [
      { path: section.moveTo, before: null, after },
      { path, before, after: null },
    ],
  }
}

/** Writes them all; when one cannot be written, those before it are put back. */
async function writeAll(workspace: Workspace, changes: FileChange[], seen: SeenFiles): Promise<void> {
  const written: FileChange[] = []
  try {
    for (const change of changes) {
      await put(workspace, change.path, change.after)
      written.push(change)
    }
  } catch (error) {
    for (const { path, before } of written.reverse()) await put(workspace, path, before).catch(() => {})
    if (error instanceof AppError) throw new AppError(error.code, `${error.message} Nothing was changed.`)
    throw error
  }
  for (const { path, after } of changes) {
    if (after === null) seen.forget(path)
    else seen.note(path, after)
  }
}

async function put({ files }: Workspace, path: string, bytes: Buffer | null): Promise<void> {
  if (bytes === null) await files.remove(path)
  else await files.write(path, bytes)
}

function describe(section: PatchSection): string {
  if (section.kind === 'add') return `added ${section.path}`
  if (section.kind === 'delete') return `deleted ${section.path}`
  return section.moveTo === null ? `updated ${section.path}` : `moved ${section.path} to ${section.moveTo}`
}
