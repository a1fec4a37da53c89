import { copyFile, type FileHandle, open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AppError } from '../kit/errors.ts'
import type { Log } from '../kit/log.ts'
import { backoff, sleep } from '../kit/retry.ts'

/** An append-only file of JSON lines behind a state in memory. */
export interface Journal<R> {
  /** Changes the state at once; resolves when the record is on the disk. A disk that takes nothing is waited for. */
  append(record: R): Promise<void>
  /** Resolves when everything appended is on the disk. */
  close(): Promise<void>
}

export interface JournalOptions<R> {
  path: string
  /** Changes the state; also for each record that is read at the start. */
  apply: (record: R) => void
  /** Records that make the state as it is now. */
  snapshot: () => R[]
  log: Log
  /** The file is written anew when it is so much longer than what it stands for. */
  slackBytes?: number
}

interface Waiting {
  line: string
  resolve: () => void
}

const SLACK_BYTES = 4 * 1024 * 1024

/**
 * Reads the file, drops a last line that a crash cut off, writes it anew without what is over, and goes on appending.
 * Whatever gathers while one write is on its way to the disk is the next write.
 */
export async function openJournal<R>(options: JournalOptions<R>): Promise<Journal<R>> {
  const { path, apply, snapshot, log, slackBytes = SLACK_BYTES } = options
  for (const record of await readRecords<R>(path, log)) apply(record)
  let file = await writeAnew(path, linesOf(snapshot()))
  let leastBytes = file.bytes
  let waiting: Waiting[] = []
  let writing: Promise<void> | null = null

  return {
    append(record) {
      apply(record)
      return new Promise((resolve) => {
        waiting.push({ line: `${JSON.stringify(record)}\n`, resolve })
        writing ??= write()
      })
    },
    async close() {
      while (writing !== null) await writing
      await file.handle.close()
    },
  }

  async function write(): Promise<void> {
    const pause = backoff({ firstMs: 50, mostMs: 5_000 })
    // A tick later, so that what is appended together is written together.
    await null
    while (waiting.length > 0) {
      const group = waiting
      waiting = []
      for (;;) {
        try {
          await keep(group)
          break
        } catch (error) {
          if (pause.failures === 0) log.error('the bridge cannot write its journal; it waits for the disk', { error })
          await sleep(pause.next())
        }
      }
      pause.reset()
      for (const { resolve } of group) resolve()
    }
    writing = null
  }

  async function keep(group: Waiting[]): Promise<void> {
    if (file.bytes > leastBytes * 2 + slackBytes) {
      // The state holds what waits already, so its picture is as good as the lines; what comes later is appended to it.
      const anew = await writeAnew(path, linesOf(snapshot()))
      await file.handle.close()
      file = anew
      leastBytes = anew.bytes
      return
    }
    const text = Buffer.from(group.map(({ line }) => line).join(''))
    // A try that failed half-way may have left a piece of a line: this write goes over it.
    for (let written = 0; written < text.length; ) {
      const { bytesWritten } = await file.handle.write(text, written, text.length - written, file.bytes + written)
      written += bytesWritten
    }
    await file.handle.truncate(file.bytes + text.length)
    await file.handle.datasync()
    file.bytes += text.length
  }
}

function linesOf<R>(records: R[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join('')
}

/** In a file beside it that then takes its place: a crash leaves the old one or the new one, whole. */
async function writeAnew(path: string, text: string): Promise<{ handle: FileHandle; bytes: number }> {
  const fresh = `${path}.new`
  const handle = await open(fresh, 'w', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
    await rename(fresh, path)
    const folder = await open(dirname(path), 'r')
    await folder.sync().finally(() => folder.close())
    return { handle, bytes: Buffer.byteLength(text) }
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function readRecords<R>(path: string, log: Log): Promise<R[]> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw new AppError('journal_unreadable', `The bridge cannot read ${path}; check who owns it.`, { cause: error })
  })
  // What stands behind the last line end was cut off by a crash before anybody was told of it.
  const lines = text.split('\n').slice(0, -1)
  const records: R[] = []
  for (const [index, line] of lines.entries()) {
    try {
      records.push(JSON.parse(line))
    } catch {
      await copyFile(path, `${path}.damaged`)
      log.error('the journal of the bridge is damaged; what stands behind this line is left in a copy', {
        path: `${path}.damaged`,
        line: index + 1,
        lines: lines.length,
      })
      return records
    }
  }
  return records
}
