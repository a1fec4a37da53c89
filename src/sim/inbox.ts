import { randomBytes } from 'node:crypto'
import { AppError } from '../kit/errors.ts'

/** A message (JSON text) in its place. */
interface Waiting {
  position: number
  text: string
}

/** What users have said to one bot and the bot has not acknowledged, oldest first. */
export interface Inbox {
  /** Adds messages (JSON texts) at the tail, or fails with `inbox_full` and adds none. */
  append(texts: string[]): void
  /** Takes a cursor as the acknowledgement of all it stands for. A foreign or older one acknowledges nothing. */
  acknowledge(cursor: string): void
  /** The oldest messages that are not acknowledged, as many as one answer may hold; never waits. */
  read(): Waiting[]
  /** Notes that these were handed out, and returns the cursor that stands for them and all before. */
  handOut(messages: Waiting[]): string
  /** Positions since the start; their differences are the sizes. */
  readonly position: { last: number; delivered: number; acknowledged: number }
}

const MOST_MESSAGES = 100
const MOST_ANSWER_CHARS = 4 * 1024 * 1024
const MOST_INBOX_CHARS = 256 * 1024 * 1024

/** An inbox whose cursors carry a random id of its own, so that those of another process are told apart. */
export function createInbox(mostChars = MOST_INBOX_CHARS): Inbox {
  const id = randomBytes(8).toString('hex')
  const waiting: Waiting[] = []
  let chars = 0
  let last = 0
  let delivered = 0
  let acknowledged = 0

  return {
    append(texts) {
      const added = texts.reduce((sum, text) => sum + text.length, 0)
      if (chars + added > mostChars) {
        throw new AppError(
          'inbox_full',
          `The bot has not fetched ${waiting.length} messages; let it poll before saying more.`,
        )
      }
      chars += added
      for (const text of texts) waiting.push({ position: ++last, text })
    },
    acknowledge(cursor) {
      const position = positionOf(cursor)
      if (position <= acknowledged || position > delivered) return
      for (const { text } of waiting.splice(0, position - acknowledged)) chars -= text.length
      acknowledged = position
    },
    read() {
      const found: Waiting[] = []
      let size = 0
      for (const message of waiting) {
        size += message.text.length
        if (found.length === MOST_MESSAGES || (size > MOST_ANSWER_CHARS && found.length > 0)) break
        found.push(message)
      }
      return found
    },
    handOut(messages) {
      const position = messages.at(-1)?.position ?? acknowledged
      delivered = Math.max(delivered, position)
      return Buffer.from(`${id}.${position}`).toString('base64')
    },
    get position() {
      return { last, delivered, acknowledged }
    },
  }

  /** 0 when the cursor is not one of this inbox. */
  function positionOf(cursor: string): number {
    const [owner, position] = Buffer.from(cursor, 'base64').toString('latin1').split('.')
    return owner === id && position !== undefined && /^\d{1,15}$/.test(position) ? Number(position) : 0
  }
}
