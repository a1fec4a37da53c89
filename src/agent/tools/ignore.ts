import type { WorkspaceFiles } from '../workspace/port.ts'
import { globMatcher, type PathMatcher } from './glob-match.ts'
import { OUTPUT_FOLDER } from './spill.ts'

/** What a search leaves out. */
export interface Ignoring {
  /** Before the first use: reads the rules of the folders above. Where the start itself is ignored, no rule counts: it was asked for. */
  start(path: string): Promise<void>
  /** For a walk: false for a folder that is left out; else its own rules are read. */
  enter(folder: string): Promise<boolean>
  isIgnored(file: string): boolean
}

interface Rule {
  /** The folder its file lies in, with a `/` at the end; empty for the root. */
  base: string
  matches: PathMatcher
  negated: boolean
  foldersOnly: boolean
}

const NEVER_ENTERED = new Set(['.git', '.hg', '.svn', 'node_modules', OUTPUT_FOLDER])
const MAX_RULES_BYTES = 256 * 1024

/** The usual rules: what .gitignore files name, folders of version control, of packages and of our own outputs. */
export function ignoring(files: WorkspaceFiles): Ignoring {
  const rules: Rule[] = []
  let isAskedFor = false

  return {
    async start(path) {
      const parts = path.split('/').filter((part) => part !== '.' && part !== '')
      for (let depth = 0; depth <= parts.length; depth += 1) {
        const above = parts.slice(0, depth).join('/')
        isAskedFor ||= NEVER_ENTERED.has(parts[depth - 1] ?? '') || verdict(above, true)
        await readRules(above)
      }
    },
    async enter(folder) {
      if (NEVER_ENTERED.has(folder.slice(folder.lastIndexOf('/') + 1)) || verdict(folder, true)) return false
      await readRules(folder)
      return true
    },
    isIgnored: (file) => verdict(file, false),
  }

  /** The last rule that fits decides, as in git. */
  function verdict(path: string, isFolder: boolean): boolean {
    if (isAskedFor) return false
    const decided = rules.findLast(
      ({ base, matches, foldersOnly }) =>
        (isFolder || !foldersOnly) && path.startsWith(base) && matches(path.slice(base.length)),
    )
    return decided !== undefined && !decided.negated
  }

  async function readRules(folder: string): Promise<void> {
    const base = folder === '' ? '' : `${folder}/`
    const bytes = await files.read(`${base}.gitignore`, MAX_RULES_BYTES).catch(() => null)
    if (bytes === null) return
    for (const line of bytes.toString('utf8').split(/\r?\n/)) {
      const rule = readRule(line, base)
      if (rule !== null) rules.push(rule)
    }
  }
}

function readRule(line: string, base: string): Rule | null {
  const text = line.replace(/(?<!\\)\s+$/, '')
  if (text === '' || text.startsWith('#')) return null
  const negated = text.startsWith('!')
  const foldersOnly = text.endsWith('/')
  const pattern = text.slice(negated ? 1 : 0, foldersOnly ? -1 : undefined)
  return pattern === '' ? null : { base, matches: globMatcher(pattern), negated, foldersOnly }
}
