import { applyPatch } from './apply-patch.ts'
import { editFile } from './edit-file.ts'
import { glob } from './glob.ts'
import { grep } from './grep.ts'
import { listDir } from './list-dir.ts'
import type { Tool } from './port.ts'
import { readFile } from './read-file.ts'
import { shellTools } from './shell.ts'
import { type WebFetchOptions, webFetch } from './web-fetch.ts'
import { writeFile } from './write-file.ts'

/** What this server allows its tools. */
export interface BuiltinOptions {
  /** Why there is no shell on this server; null when there is one. */
  shellOff: string | null
  web: WebFetchOptions
}

/** The tools for files, commands and the web. What belongs to the loop itself (todos, plans, tasks) is added by it. */
export function builtinTools({ shellOff, web }: BuiltinOptions): Tool[] {
  return [
    readFile,
    writeFile,
    editFile,
    applyPatch,
    listDir,
    glob,
    grep,
    ...shellTools(shellOff ?? undefined),
    webFetch(web),
  ]
}
