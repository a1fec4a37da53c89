import { StringDecoder } from 'node:string_decoder'

/** Keeps the beginning and the end of what a program prints, and counts what it drops in between. */
export interface OutputBuffer {
  push(chunk: Buffer): void
  /** What was kept so far, printable; it is forgotten by this. */
  take(): { text: string; truncated: boolean }
}

/** Holds about `maxBytes`, whatever is printed. */
export function outputBuffer(maxBytes: number): OutputBuffer {
  const half = Math.max(1, Math.floor(maxBytes / 2))
  const decoder = new StringDecoder('utf8')
  let head = ''
  let tail: string[] = []
  let tailLength = 0
  let dropped = 0

  return {
    push(chunk) {
      let text = decoder.write(chunk)
      if (head.length < half) {
        const room = cutAt(text, half - head.length)
        head += text.slice(0, room)
        text = text.slice(room)
      }
      if (text === '') return
      tail.push(text)
      tailLength += text.length
      // Whole chunks only: cutting strings at every push would cost more than the room they take.
      for (let first = tail[0]; first !== undefined && tailLength - first.length >= half; first = tail[0]) {
        dropped += first.length
        tailLength -= first.length
        tail.shift()
      }
    },
    take() {
      const end = tail.join('')
      const from = cutAt(end, Math.max(0, end.length - half))
      const missing = dropped + from
      const text = missing === 0 ? head + end : `${head}\n… ${missing} characters left out …\n${end.slice(from)}`
      head = ''
      tail = []
      tailLength = 0
      dropped = 0
      return { text: printable(text), truncated: missing > 0 }
    },
  }
}

const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_=>])/g
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g

/** `text` without colours and cursor movements; other characters that cannot be shown become `�`. */
export function printable(text: string): string {
  return text.replace(ESCAPES, '').replaceAll('\r\n', '\n').replaceAll('\r', '\n').replace(CONTROLS, '\ufffd')
}

/** `at`, or one less where that would cut a character in two. */
function cutAt(text: string, at: number): number {
  const before = text.charCodeAt(at - 1)
  return at > 0 && at < text.length && before >= 0xd800 && before <= 0xdbff ? at - 1 : at
}
