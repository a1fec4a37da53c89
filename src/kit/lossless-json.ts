/**
 * JSON whose numbers keep all their digits. Message ids of the bot protocol pass 2^53, where `JSON.parse` rounds.
 * Two tools: `parseLossless` reads a text with such numbers turned into strings, and the span functions cut pieces out
 * of a text without ever writing it anew.
 */

/** A member of an object, or an element of an array, as it stands in the text. */
export interface Span {
  /** The decoded name of a member; the empty string for an element. */
  key: string
  /** Where the member starts (at its name), or the element's value. */
  start: number
  valueStart: number
  /** Just behind the value. */
  end: number
}

const LONG_INTEGER = /\d{16}/
// Where a value may start. Digits of a string may stand there too, and are then looked at for nothing.
const LONG_VALUE = /(?:^|[:,[\s])-?\d{16}/
// Not part of a fraction or an exponent, without a leading zero, and no name of a member: what JSON refuses stays refused.
const LONG_INTEGERS = /(?<![\w.+-])-?[1-9]\d{15,}(?![\w.+-])(?!\s*:)/g
const LONG_DIGITS = 16

/** Parses JSON; integers that a double cannot hold exactly become strings of their digits. Throws `SyntaxError`. */
export function parseLossless(text: string): unknown {
  return JSON.parse(mayRound(text) ? quoteLongIntegers(text) : text)
}

/** False when `JSON.parse` reads the text as `parseLossless` does. */
export function mayRound(text: string): boolean {
  return LONG_VALUE.test(text)
}

/** Goes from string to string and looks at what is between them; digits inside strings are left alone. */
function quoteLongIntegers(text: string): string {
  let quoted = ''
  let copied = 0
  let position = 0
  for (;;) {
    const quote = text.indexOf('"', position)
    const end = quote === -1 ? text.length : quote
    if (end - position >= LONG_DIGITS) {
      const between = text.slice(position, end)
      if (LONG_INTEGER.test(between)) {
        quoted += text.slice(copied, position) + between.replace(LONG_INTEGERS, quoteUnsafe)
        copied = end
      }
    }
    if (quote === -1) return quoted + text.slice(copied)
    position = skipString(text, quote)
  }
}

function quoteUnsafe(digits: string): string {
  return Number.isSafeInteger(Number(digits)) ? digits : `"${digits}"`
}

/**
 * The members of the object, or the elements of the array, that starts at `at`. The text must be valid JSON. `skip`: finds
 * the end of a value.
 */
export function spans(
  text: string,
  at = 0,
  skip: (text: string, at: number, key: string) => number = skipValue,
): Span[] {
  const found: Span[] = []
  let position = skipSpace(text, at)
  const isObject = text[position] === '{'
  if (!isObject && text[position] !== '[') return found
  position = skipSpace(text, position + 1)
  while (position < text.length && text[position] !== '}' && text[position] !== ']') {
    const start = position
    let key = ''
    if (isObject) {
      const keyEnd = skipString(text, position)
      key = decodeKey(text, position, keyEnd)
      position = skipSpace(text, skipSpace(text, keyEnd) + 1)
    }
    const end = skip(text, position, key)
    found.push({ key, start, valueStart: position, end })
    position = skipSpace(text, end)
    if (text[position] === ',') position = skipSpace(text, position + 1)
  }
  return found
}

/** The raw text of the member `key` of the object that `text` is; the last one where a name stands twice. */
export function rawMember(text: string, key: string, members: readonly Span[] = spans(text)): string | undefined {
  const member = members.findLast((span) => span.key === key)
  return member && text.slice(member.valueStart, member.end)
}

/** The raw texts of an array's elements. */
export function rawElements(text: string): string[] {
  return textsOf(text, spans(text))
}

/** The raw texts of the elements of the array that the member `key` of an object is; read on the way, and not once more. */
export function elementsOf(text: string, key: string): string[] {
  let elements: Span[] = []
  spans(text, 0, (_text, at, name) => {
    if (name !== key) return skipValue(text, at)
    elements = text[at] === '[' ? spans(text, at) : []
    const last = elements.at(-1)
    return last === undefined ? skipValue(text, at) : skipSpace(text, last.end) + 1
  })
  return textsOf(text, elements)
}

function textsOf(text: string, found: readonly Span[]): string[] {
  return found.map(({ valueStart, end }) => text.slice(valueStart, end))
}

/** The object `text` without the members named; everything else stays as it was, to the digit. `all`: its members. */
export function withoutMembers(text: string, keys: ReadonlySet<string>, all: readonly Span[] = spans(text)): string {
  if (!all.some((span) => keys.has(span.key))) return text.trim()
  const kept = all.filter((span) => !keys.has(span.key)).map((span) => text.slice(span.start, span.end))
  return `{${kept.join(',')}}`
}

/** The object `text` with `members` (JSON source, e.g. `"a":1`) put in front of its own. */
export function withMembers(text: string, members: string): string {
  const body = text.trim()
  return body === '{}' || /^\{\s*\}$/.test(body) ? `{${members}}` : `{${members},${body.slice(1)}`
}

/**
 * The JSON text with the string values of the members named `keys`, at every depth, replaced by what `map` makes of them;
 * where it returns its argument, the text stays as it was, to the letter.
 */
export function mapStringMembers(text: string, keys: ReadonlySet<string>, map: (value: string) => string): string {
  let mapped = ''
  let copied = 0
  let position = text.indexOf('"')
  while (position !== -1) {
    const end = skipString(text, position)
    const colon = skipSpace(text, end)
    const valueStart = text[colon] === ':' ? skipSpace(text, colon + 1) : -1
    if (valueStart !== -1 && text[valueStart] === '"' && keys.has(decodeKey(text, position, end))) {
      const valueEnd = skipString(text, valueStart)
      const value = decodeKey(text, valueStart, valueEnd)
      const made = map(value)
      if (made !== value) {
        mapped += text.slice(copied, valueStart) + JSON.stringify(made)
        copied = valueEnd
      }
      position = text.indexOf('"', valueEnd)
    } else position = text.indexOf('"', valueStart === -1 ? end : valueStart)
  }
  return mapped + text.slice(copied)
}

function decodeKey(text: string, start: number, end: number): string {
  const source = text.slice(start, end)
  return source.includes('\\') ? String(JSON.parse(source)) : source.slice(1, -1)
}

function skipSpace(text: string, at: number): number {
  let position = at
  for (;;) {
    const code = text.charCodeAt(position)
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return position
    position += 1
  }
}

/** Just behind the string that starts at `at`. */
function skipString(text: string, at: number): number {
  let position = at + 1
  for (;;) {
    const quote = text.indexOf('"', position)
    if (quote === -1) return text.length
    let backslashes = 0
    while (text[quote - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return quote + 1
    position = quote + 1
  }
}

function skipValue(text: string, at: number): number {
  const first = text[at]
  if (first === '"') return skipString(text, at)
  let position = at
  if (first !== '{' && first !== '[') {
    while (position < text.length && !',]} \n\r\t'.includes(text.charAt(position))) position += 1
    return position
  }
  let depth = 0
  while (position < text.length) {
    const char = text.charCodeAt(position)
    if (char === 0x22) {
      position = skipString(text, position)
      continue
    }
    position += 1
    if (char === 0x7b || char === 0x5b) depth += 1
    else if ((char === 0x7d || char === 0x5d) && --depth === 0) return position
  }
  return position
}
