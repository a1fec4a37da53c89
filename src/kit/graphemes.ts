const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

/**
 * The last place at or before `at` where a text may be cut in two without taking a character apart as people see it: a
 * flag, a family of emoji, a letter with its accents. Where one of them fills all before `at`, only its surrogate pairs
 * are kept whole.
 */
export function wholeCharacters(text: string, at: number): number {
  if (at <= 0 || at >= text.length || (isPlain(text, at - 1) && isPlain(text, at))) return at
  // What stands left of a plain sign has no say in what follows it, so that is far enough to look back.
  let from = at - 1
  while (from > 0 && !isPlain(text, from)) from -= 1
  const character = segmenter.segment(text.slice(from, at + 2)).containing(at - from)
  const begin = from + (character?.index ?? 0)
  if (begin > 0) return begin
  return at > 1 && /[\ud800-\udbff]/.test(text.charAt(at - 1)) ? at - 1 : at
}

/** ASCII, without the line ends and other signs that join or are joined. */
function isPlain(text: string, index: number): boolean {
  const code = text.charCodeAt(index)
  return code >= 0x20 && code < 0x7f
}
