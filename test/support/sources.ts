import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A file of this repository as the checks see it. */
export interface SourceFile {
  /** From the repository's root, with `/`. */
  path: string
  text: string
}

/** A module that a file names. */
export interface Import {
  specifier: string
  /** It leaves nothing behind at run time. */
  typeOnly: boolean
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Every file under the folders whose name matches, sorted by path. A folder that is not there has none. */
export function sourceFiles(folders: readonly string[], name: RegExp): SourceFile[] {
  return folders
    .flatMap((folder) => listFiles(folder))
    .filter((path) => name.test(path))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
}

// Formatted code has its imports at the start of a line, so prose and strings do not look like one.
const STATIC_IMPORT = /^import\s+(type\s+)?(?:[^'";]*?\sfrom\s+)?['"]([^'"]+)['"]/gm
const RE_EXPORT = /^export\s+(type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s+from\s+['"]([^'"]+)['"]/gm
const RUN_TIME_IMPORT = /\b(?:import|require)\(\s*['"`]([^'"`]+)['"`]|\bnew URL\(\s*['"`]([^'"`]+\.[jt]s)['"`]/g

/** What a module imports: statically, by re-export, at run time, or as the file of a worker thread. */
export function importsOf(text: string): Import[] {
  const code = withoutComments(text)
  const found: Import[] = []
  for (const pattern of [STATIC_IMPORT, RE_EXPORT]) {
    for (const [, type, specifier = ''] of code.matchAll(pattern))
      found.push({ specifier, typeOnly: type !== undefined })
  }
  for (const [, called, worker] of code.matchAll(RUN_TIME_IMPORT)) {
    // A worker is named by its built file.
    found.push({ specifier: called ?? worker?.replace(/\.js$/, '.ts') ?? '', typeOnly: false })
  }
  return found
}

/** `text` with its comments blanked, so that what is only told of is not taken for code. Good enough for formatted code. */
export function withoutComments(text: string): string {
  return text.replace(/^\s*\/\*[\s\S]*?\*\/|^\s*\/\/.*$|(?<=[\s;,{}()])\/\/ .*$/gm, '')
}

function listFiles(folder: string): string[] {
  try {
    const entries = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile())
    return files.map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length).replaceAll('\\', '/'))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}
