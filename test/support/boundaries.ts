import { posix } from 'node:path'
import { type Import, importsOf, type SourceFile, withoutComments } from './sources.ts'

/** The most lines a source file may have. */
export const MAX_LINES = 400

/** The folders of ours that the files of a folder may import beside their own. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  wire: [],
  kit: [],
  hub: ['wire', 'kit'],
  agent: ['wire', 'kit'],
  sim: ['wire', 'kit'],
  client: ['wire', 'kit'],
  bridge: ['client', 'wire', 'kit'],
}

/** Packages that only some files may know. */
const CONFINED: { packages: RegExp; to: RegExp; says: string }[] = [
  {
    packages: /^(@fastify\/|fastify(\/|$))/,
    to: /^src\/(.+\/http\/|kit\/http\.ts$|sim\/[^/]*routes)/,
    says: 'only http/* and kit/http.ts know the web framework',
  },
  {
    packages: /^undici(\/|$)/,
    to: /^src\/(hub\/(upstream|cluster)|client)\//,
    says: 'undici belongs to upstream, cluster and client',
  },
  {
    packages: /^(@photostructure\/sqlite|node:sqlite)$/,
    to: /^src\/kit\/sqlite\/database\.ts$/,
    says: 'only database.ts knows the database',
  },
  {
    packages: /^(node:)?(fs|fs\/promises|child_process)$/,
    to: /^src\/(?!agent\/tools\/)/,
    says: 'tools see the Workspace only',
  },
]

const PROCESS =
  /\bprocess\.(?:env|argv|exit)\b|^import\s[^'"]*\b(?:env|argv|exit|process)\b[^'"]*\sfrom\s+['"](?:node:)?process['"]/m

/** Node 20 collects such a timeout as garbage, and the call it bounds waits for ever. */
const LOST_TIMEOUT = /\bAbortSignal\.any\(\[[^\]]*\bAbortSignal\.timeout\(/

/** The one package that a file of kit may know. */
const KIT_PACKAGES: Record<string, RegExp> = {
  'http.ts': /^fastify$/,
  'schema.ts': /^typebox(\/|$)/,
  'log.ts': /^pino$/,
  'metrics.ts': /^prom-client$/,
  'connect.ts': /^postgres$/,
  'database.ts': /^@photostructure\/sqlite$/,
  'bucket.ts': /^@aws-sdk\/client-s3$/,
  'writer.ts': /^tsx\/esm\/api$/,
}

/** Every way in which the files break the import table of ARCHITECTURE.md or the size budget, as `path: what`. */
export function violations(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => [...tooLong(file), ...(isProduct(file.path) ? badImports(file) : [])])
}

function tooLong({ path, text }: SourceFile): string[] {
  const lines = text.replace(/\n$/, '').split('\n').length
  return lines > MAX_LINES ? [`${path}: has ${lines} lines, more than ${MAX_LINES}`] : []
}

/** Tests may build what they test from anything. */
function isProduct(path: string): boolean {
  return path.startsWith('src/') && !/\.(test|contract)\.ts$/.test(path)
}

function badImports({ path, text }: SourceFile): string[] {
  const problems = importsOf(text).flatMap((one) =>
    one.specifier.startsWith('.') ? badOwn(path, one) : badPackage(path, one.specifier),
  )
  const touched = isCommandLine(path) ? null : PROCESS.exec(withoutComments(text))
  if (touched) problems.push(`has «${touched[0]}»: only the command line touches the process`)
  if (LOST_TIMEOUT.test(withoutComments(text))) problems.push('a timeout inside any() is lost in Node 20: timeLimit()')
  return problems.map((problem) => `${path}: ${problem}`)
}

/** An import of one of our own files. */
function badOwn(path: string, { specifier, typeOnly }: Import): string[] {
  const target = posix.join(posix.dirname(path), specifier)
  if (!specifier.endsWith('.ts')) return [`imports ${specifier}: name the file with its .ts ending`]
  if (!target.startsWith('src/')) return [`imports ${target}: it is outside of src/`]
  if (/\.(test|contract)\.ts$/.test(target)) return [`imports ${target}: it is a test`]
  return [...badFolder(path, target), ...badAdapter(path, target, typeOnly)]
}

function badFolder(path: string, target: string): string[] {
  const from = folderOf(path)
  const to = folderOf(target)
  if (from === to || MAY_IMPORT[from]?.includes(to)) return []
  if (isCommandLine(path) && /^src\/(cli\/|kit\/|client\/|[^/]+\/(main|config)\.ts$)/.test(target)) return []
  return [`imports ${target}: ${from} may not import ${to}`]
}

/** A port may be seen by all; what stands behind it is chosen by `main.ts` and known to its own folder. */
function badAdapter(path: string, target: string, typeOnly: boolean): string[] {
  const folder = /^src\/[^/]+\/(?:store|upstream)\//.exec(target)?.[0]
  if (folder === undefined || typeOnly || path.startsWith(folder)) return []
  if (path.endsWith('/main.ts') || target.endsWith('/port.ts')) return []
  return [`imports ${target} by value: only main.ts chooses adapters`]
}

function badPackage(path: string, specifier: string): string[] {
  const problems = CONFINED.filter(({ packages, to }) => packages.test(specifier) && !to.test(path)).map(
    ({ says }) => says,
  )
  const isNode = specifier.startsWith('node:')
  const folder = folderOf(path)
  if (folder === 'wire' && !/^typebox(\/|$)/.test(specifier)) problems.push('wire may import typebox only')
  if (folder === 'kit' && !isNode && !isKitPackage(posix.basename(path), specifier))
    problems.push('not a package of this file')
  return problems.map((says) => `imports ${specifier}: ${says}`)
}

function isKitPackage(file: string, specifier: string): boolean {
  if (/-(redis|postgres)\.ts$/.test(file)) return true
  return KIT_PACKAGES[file]?.test(specifier) ?? false
}

/** `cli.ts` and what stands behind it. */
function isCommandLine(path: string): boolean {
  return path === 'src/cli.ts' || path.startsWith('src/cli/')
}

/** `hub` for src/hub/…; the file's own name for what stands in src/ itself. */
function folderOf(path: string): string {
  return path.split('/')[1] ?? ''
}
