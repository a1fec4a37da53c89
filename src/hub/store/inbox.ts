import { hash } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { elementsOf, withMembers } from '../../kit/lossless-json.ts'
import { INBOX_PLACES, type InboxEntry, type InboxStore } from './port.ts'

const FOLDER = 'inbox'
const NAME_CHARS = 16

/** What an account has open for one service and bot. */
interface Places {
  name: string
  files: (FileHandle | undefined)[]
  next: number
}

/**
 * Answers of the service as they came, a file each. A place is written over only when what it held is stored, so a crash
 * in the middle of it loses nothing that was told. Nothing is made before it is needed.
 */
export function openInbox(dir: string): InboxStore & { close(): Promise<void> } {
  const folder = join(dir, FOLDER)
  const opened = new Map<string, Places>()

  return {
    async keep(account, entry) {
      const places = placesOf(account, entry.source)
      const file = await openPlace(places, places.next % INBOX_PLACES)
      const text = Buffer.from(entryText(entry))
      const head = Buffer.from(`${text.length} ${hash('sha256', text)}\n`)
      await writeWhole(file, Buffer.concat([head, text]))
      await file.datasync()
      places.next += 1
    },
    async due(account, source, cursor) {
      const entries = await readAll(placesOf(account, source))
      const due: InboxEntry[] = []
      for (let at = cursor; ; ) {
        const next = entries.find((entry) => entry.after === at && !due.includes(entry))
        if (next === undefined) return due
        due.push(next)
        at = next.cursor
      }
    },
    async clear(account, source) {
      const places = placesOf(account, source)
      for (const at of await placesUsed(places)) await (await openPlace(places, at)).truncate()
    },
    async close() {
      for (const { files } of opened.values()) for (const file of files) await file?.close()
      opened.clear()
    },
  }

  /** Of its own for every login: what another has left is not touched. */
  function placesOf(account: string, source: string): Places {
    const name = hash('sha256', `${account}\n${source}`).slice(0, NAME_CHARS)
    const known = opened.get(name)
    if (known !== undefined) return known
    const made: Places = { name, files: [], next: 0 }
    opened.set(name, made)
    return made
  }

  async function openPlace({ name, files }: Places, at: number): Promise<FileHandle> {
    const known = files[at]
    if (known !== undefined) {
      // Removed by somebody, it would be written to and never found again.
      if ((await known.stat()).nlink > 0) return known
      files[at] = undefined
      await known.close()
    }
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const path = join(folder, `${name}.${at}`)
    const file = await open(path, 'r+').catch(() => open(path, 'wx+', 0o600))
    files[at] = file
    // The name of a new file has to be there after a crash, too.
    for (const one of [folder, dir]) await syncFolder(one)
    return file
  }

  async function placesUsed({ name }: Places): Promise<number[]> {
    const names = new Set(await filesIn(folder))
    return Array.from({ length: INBOX_PLACES }, (_, at) => at).filter((at) => names.has(`${name}.${at}`))
  }

  async function readAll(places: Places): Promise<InboxEntry[]> {
    const used = await placesUsed(places)
    const texts = await Promise.all(used.map((at) => readFile(join(folder, `${places.name}.${at}`))))
    return texts.flatMap((bytes) => readEntry(bytes) ?? [])
  }
}

/** True when answers may be in there that were kept and not stored. */
export async function inboxHolds(dir: string): Promise<boolean> {
  const folder = join(dir, FOLDER)
  const names = await filesIn(folder)
  const files = await Promise.all(names.map((name) => readFile(join(folder, name))))
  return files.some((bytes) => readEntry(bytes) !== null)
}

/** The names of its files; none when there is no such folder. */
async function filesIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return []
    throw error
  }
}

async function writeWhole(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let written = 0; written < bytes.length; )
    written += (await file.write(bytes, written, bytes.length - written, written)).bytesWritten
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Null for one that was never whole: it was not told to anyone, so the service has it still. */
function readEntry(bytes: Buffer): InboxEntry | null {
  const end = bytes.indexOf('\n')
  const [length, digest] = bytes.toString('latin1', 0, Math.max(0, end)).split(' ')
  const text = bytes.subarray(end + 1, end + 1 + Number(length))
  if (end === -1 || text.length !== Number(length) || hash('sha256', text) !== digest) return null
  const source = text.toString()
  const entry: Omit<InboxEntry, 'messages'> = JSON.parse(source)
  return { ...entry, messages: elementsOf(source, 'messages') }
}

/** With the messages as they are: to write them anew, as strings in a string, would cost more than to keep them. */
function entryText({ messages, ...rest }: InboxEntry): string {
  return withMembers(JSON.stringify(rest), `"messages":[${messages.join(',')}]`)
}
