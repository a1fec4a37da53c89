/** Elements whose content is not for reading. */
const UNREAD = new Set(['script', 'style', 'noscript', 'template', 'svg', 'iframe', 'object', 'title'])
const BLOCKS = new Set(
  'address article aside blockquote body dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html li main nav ol option p pre section select summary table tbody td tfoot th thead title tr ul'.split(
    ' ',
  ),
)
const ENTITIES: Record<string, string> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  ndash: '–',
  mdash: '—',
  hellip: '…',
  lsquo: '‘',
  rsquo: '’',
  ldquo: '“',
  rdquo: '”',
  bull: '•',
  middot: '·',
  copy: '©',
  reg: '®',
  trade: '™',
  euro: '€',
  laquo: '«',
  raquo: '»',
  times: '×',
  szlig: 'ß',
}
/** `&uuml;` and its like: a letter and what stands over or under it. */
const MARKS: Record<string, string> = {
  grave: '\u0300',
  acute: '\u0301',
  circ: '\u0302',
  tilde: '\u0303',
  uml: '\u0308',
  ring: '\u030a',
  cedil: '\u0327',
}

/**
 * The text of a page: its title, paragraphs, headings with `#`, list entries with `-`, links with where they lead. Goes over
 * the page once, whatever is in it.
 */
export function htmlToText(html: string): string {
  const parts: string[] = []
  const title = titleOf(html)
  if (title !== '') parts.push(`${title}\n\n`)
  let at = 0
  while (at < html.length) {
    const open = html.indexOf('<', at)
    if (open === -1) {
      parts.push(plain(html.slice(at)))
      break
    }
    parts.push(plain(html.slice(at, open)))
    const tag = readTag(html, open)
    if (tag === null) {
      parts.push('<')
      at = open + 1
      continue
    }
    at = tag.end
    if (UNREAD.has(tag.name) && !tag.closing && !tag.empty) at = endOf(html, tag.name, at)
    else parts.push(markOf(tag))
  }
  return tidy(parts.join(''))
}

interface Tag {
  name: string
  closing: boolean
  empty: boolean
  attributes: string
  end: number
}

/** The tag, comment or declaration that begins here; null for a `<` that is just one. */
function readTag(html: string, open: number): Tag | null {
  if (html.startsWith('<!--', open)) {
    const close = html.indexOf('-->', open + 4)
    return { name: '', closing: false, empty: true, attributes: '', end: close === -1 ? html.length : close + 3 }
  }
  if (!/[a-zA-Z/!?]/.test(html[open + 1] ?? '')) return null
  const close = html.indexOf('>', open)
  const end = close === -1 ? html.length : close + 1
  const inside = html.slice(open + 1, close === -1 ? html.length : close)
  const closing = inside.startsWith('/')
  const name = /^[a-zA-Z][a-zA-Z0-9-]*/.exec(closing ? inside.slice(1) : inside)?.[0].toLowerCase() ?? ''
  return { name, closing, empty: inside.endsWith('/'), attributes: inside.slice(name.length), end }
}

function endOf(html: string, name: string, from: number): number {
  const close = new RegExp(`</${name}[\\s>]`, 'gi')
  close.lastIndex = from
  const found = close.exec(html)
  if (found === null) return html.length
  const end = html.indexOf('>', found.index)
  return end === -1 ? html.length : end + 1
}

function markOf({ name, closing, attributes }: Tag): string {
  if (name === 'br') return '\n'
  if (name === 'a' && !closing) return linkMark(attributes)
  if (!BLOCKS.has(name)) return ''
  if (closing) return name === 'td' || name === 'th' ? ' | ' : '\n'
  if (name === 'li') return '\n- '
  if (name === 'td' || name === 'th') return ''
  return /^h[1-6]$/.test(name) ? `\n\n${'#'.repeat(Number(name[1]))} ` : '\n'
}

/** Where it leads stands before the text of the link: the end tag does not know. */
function linkMark(attributes: string): string {
  const found = /\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i.exec(attributes.slice(0, 4_000))
  const href = decode(found?.[1] ?? found?.[2] ?? found?.[3] ?? '')
  return /^(https?:|\/)/i.test(href) ? `[${href}] ` : ''
}

function titleOf(html: string): string {
  const open = html.slice(0, 100_000).search(/<title[\s>]/i)
  if (open === -1) return ''
  const from = html.indexOf('>', open) + 1
  const to = html.indexOf('<', from)
  return plain(html.slice(from, to === -1 ? from : to)).trim()
}

function plain(text: string): string {
  return decode(text.replace(/\s+/g, ' '))
}

function decode(text: string): string {
  return text.replace(/&(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8});/gi, (whole, name: string) => {
    if (!name.startsWith('#')) return named(name) ?? whole
    const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
}

function named(name: string): string | undefined {
  const mark = MARKS[name.slice(1)]
  return mark === undefined ? ENTITIES[name.toLowerCase()] : `${name[0]}${mark}`.normalize('NFC')
}

function tidy(text: string): string {
  const lines = text.split('\n').map((line) => line.replace(/\s+/g, ' ').trim())
  return lines
    .filter((line, index) => line !== '' || lines[index - 1] !== '')
    .join('\n')
    .trim()
}
