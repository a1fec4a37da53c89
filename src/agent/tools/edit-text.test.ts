import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { type Edited, editText } from './edit-text.ts'

function edit(text: string, oldText: string, newText: string, all = false): Edited {
  return editText(text, { oldText, newText, all })
}

function edited(text: string, oldText: string, newText: string, all = false): string {
  const result = edit(text, oldText, newText, all)
  if (!result.ok) throw new Error(result.problem)
  return result.text
}

describe('an edit', () => {
  test('replaces the one place, and takes the new text as it is', () => {
    expect(edited('a b c', 'b', "$& $1 $' $`")).toBe("a $& $1 $' $` c")
  })

  verifies('agent:tools:edit', 'keeps the line endings of the file', () => {
    expect(edited('a\r\nb\r\nc\r\n', 'b', 'x\ny')).toBe('a\r\nx\r\ny\r\nc\r\n')
    expect(edited('a\r\nb\r\nc\r\n', 'a\nb\n', 'x\n')).toBe('x\r\nc\r\n')
    expect(edited('a\nb\nc\n', 'a\r\nb', 'x\r\ny')).toBe('x\ny\nc\n')
    expect(edited('a\nb\r\nc\nd\n', 'b\nc', 'x\ny')).toBe('a\nx\ny\nd\n')
  })

  test('keeps the end of the file as it is', () => {
    expect(edited('a\nb', 'b', 'c')).toBe('a\nc')
    expect(edited('a\nb  ', 'a\nb\n', 'a\nc\n')).toBe('a\nc')
    expect(edited('a\nb\n', 'b\n', 'c\n')).toBe('a\nc\n')
  })

  verifies('agent:tools:edit', 'overlooks other spaces at the ends of lines', () => {
    const result = edit('one  \ntwo\t\nthree\n', 'one\ntwo', 'uno\ndos')
    expect(result).toMatchObject({ ok: true, kind: 'trailing space', text: 'uno\ndos\nthree\n', line: 1 })
  })

  verifies('agent:tools:edit', 'overlooks another indentation of whole lines, and indents the new text alike', () => {
    const file = 'class A {\n    method() {\n        return 1\n    }\n}\n'
    const result = edit(file, 'method() {\n    return 1\n}', 'method() {\n    // two\n    return 2\n}')
    expect(result).toMatchObject({
      ok: true,
      kind: 'indentation',
      text: 'class A {\n    method() {\n        // two\n        return 2\n    }\n}\n',
    })
  })

  test('overlooks tabs that were taken for spaces, and the other way round', () => {
    const tabs = 'if (ready) {\n\tcall(one)\n\tif (more) {\n\t\tcall(two)\n\t}\n}\n'
    expect(edited(tabs, '    if (more) {\n        call(two)\n    }', '    if (more) {\n        call(3)\n    }')).toBe(
      tabs.replace('two', '3'),
    )
    const spaces = tabs.replaceAll('\t', '  ')
    expect(edited(spaces, '\tif (more) {\n\t\tcall(two)\n\t}', '\tif (more) {\n\t\tcall(3)\n\t}')).toBe(
      spaces.replace('two', '3'),
    )
  })

  test('replaces all places when asked to', () => {
    expect(edited('a b a b a', 'a', 'aa', true)).toBe('aa b aa b aa')
    expect(edited('aaa', 'aa', 'b', true)).toBe('ba')
  })
})

describe('an edit is refused', () => {
  verifies('agent:tools:edit', 'when it fits several places, and says which', () => {
    const result = edit('x = 1\ny\nx = 1\n', 'x = 1', 'x = 2')
    expect(result).toEqual({ ok: false, problem: expect.stringContaining('matches 2 places (lines 1, 3)') })
    expect(edit('aaa', 'aa', 'b')).toMatchObject({ ok: false })
    const relaxed = edit(
      '  call(the first, the second)\n    call(the first, the second)\n',
      'call(the first, the second) ',
      'x',
    )
    expect(relaxed).toEqual({ ok: false, problem: expect.stringContaining('matches 2 places') })
  })

  verifies('agent:tools:edit-refused', 'when it fits nowhere, with the nearest place', () => {
    const file = Array.from({ length: 100 }, (_, index) => `const value${index} = compute(${index})`).join('\n')
    const result = edit(file, 'const value41 = compute(41)\nconst value42 = compute(43)', 'x')
    expect(result).toEqual({ ok: false, problem: expect.stringContaining('    43\tconst value42 = compute(42)') })
    const near = edit('function greetUser(name) {}\n', 'function greetUsers(name, more) {}', 'x')
    expect(near).toEqual({ ok: false, problem: expect.stringContaining('     1\tfunction greetUser(name) {}') })
    expect(edit('abc', 'something wholly different', 'x')).toEqual({
      ok: false,
      problem: expect.stringContaining('0 places'),
    })
  })

  test('with at most 800 bytes of the file', () => {
    const file = `${'x'.repeat(5_000)}\n`.repeat(10)
    const result = edit(file, `${'x'.repeat(4_000)}\n`.repeat(2), 'y')
    if (result.ok) throw new Error('not refused')
    expect(result.problem.length).toBeLessThan(1_000)
  })

  test('when there is nothing to do', () => {
    expect(edit('a', '', 'b')).toMatchObject({ ok: false })
    expect(edit('a', 'a', 'a')).toMatchObject({ ok: false })
  })

  test('rather than to find a little text at another depth', () => {
    expect(edit('if (a) {\n    x\n}\n', '  }', '  }}')).toMatchObject({ ok: false })
    expect(edit('  return x\n', '      return x', '      return y')).toMatchObject({ ok: false })
    expect(edit('   \n\n', ' \n \n', 'x')).toMatchObject({ ok: false })
  })

  test('when a new line is less indented than all old ones and the place is another depth', () => {
    const file = 'class A {\n    one(first)\n    two(second)\n}\n'
    expect(edit(file, '  one(first)\n  two(second)', '  one(first)\n}\nrest')).toMatchObject({ ok: false })
  })
})

test('whatever the text, an edit changes what it names and nothing else', () => {
  const texts = fc
    .array(fc.constantFrom('a', 'b', ' ', '\t', '\n', '\r\n', 'foo', '$&', '}'), { maxLength: 40 })
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(texts, texts, texts, (before, middle, after) => {
      const text = `${before}<<${middle}>>${after}`
      const result = edit(text, `<<${middle}>>`, 'NEW')
      if (!result.ok) throw new Error(result.problem)
      expect(result.text).toBe(`${before}NEW${after}`)
    }),
  )
})

interface Case {
  file: string
  oldText: string
  newText: string
  /** null: it must be refused. */
  expected: string | null
}

/** Ways in which what a model says differs from the file, and how many at least must be understood. */
const MUTATIONS: [string, number, (lines: string[], from: number, to: number) => Case][] = [
  ['none', 1, (lines, from, to) => plainCase(lines, from, to)],
  [
    'a file with CRLF',
    1,
    (lines, from, to) => {
      const plain = plainCase(lines, from, to)
      const crlf = (text: string) => text.replaceAll('\n', '\r\n')
      return { ...plain, file: crlf(plain.file), expected: crlf(plain.expected ?? '') }
    },
  ],
  [
    'spaces at line ends in the file',
    1,
    (lines, from, to) => {
      const spaced = lines.map((line, index) => (index >= from && index < to ? `${line}  ` : line))
      return { ...plainCase(lines, from, to), file: `${spaced.join('\n')}\n` }
    },
  ],
  [
    'spaces at line ends in the old text',
    1,
    (lines, from, to) => {
      const plain = plainCase(lines, from, to)
      return { ...plain, oldText: plain.oldText.replaceAll('\n', ' \t\n') }
    },
  ],
  [
    'more indentation',
    0.8,
    (lines, from, to) => {
      const plain = plainCase(lines, from, to)
      const deeper = (text: string) => text.replace(/^(?=.)/gm, '    ')
      return { ...plain, oldText: deeper(plain.oldText), newText: deeper(plain.newText) }
    },
  ],
  [
    'no indentation',
    0.8,
    (lines, from, to) => {
      const plain = plainCase(lines, from, to)
      const indent = Math.min(
        ...lines
          .slice(from, to)
          .filter((line) => line !== '')
          .map((line) => line.search(/\S/)),
      )
      const dedent = (text: string) => text.replace(new RegExp(`^ {${indent}}`, 'gm'), '')
      return { ...plain, oldText: dedent(plain.oldText), newText: dedent(plain.newText) }
    },
  ],
  [
    'a file with tabs',
    0.8,
    (lines, from, to) => {
      const plain = plainCase(lines, from, to)
      const tabs = (text: string) => text.replace(/^(?: {2})+/gm, (spaces) => '\t'.repeat(spaces.length / 2))
      return { ...plain, file: tabs(plain.file), expected: tabs(plain.expected ?? '') }
    },
  ],
  [
    'a line that was changed since',
    0,
    (lines, from, to) => {
      const at = longLine(lines, from, to)
      const changed = lines.map((line, index) => (index === at ? `${line.slice(0, -4)}#${line.slice(-4)}` : line))
      return { ...plainCase(lines, from, to), file: `${changed.join('\n')}\n`, expected: null }
    },
  ],
  [
    'a line that was removed since',
    0,
    (lines, from, to) => {
      const at = longLine(lines, from, to)
      const removed = lines.filter((_, index) => index !== at)
      return { ...plainCase(lines, from, to), file: `${removed.join('\n')}\n`, expected: null }
    },
  ],
  [
    'the whole region twice',
    0,
    (lines, from, to) => {
      const file = `${[...lines, ...lines.slice(from, to)].join('\n')}\n`
      return { ...plainCase(lines, from, to), file, expected: null }
    },
  ],
  [
    'the region gone, and once more at another depth',
    0,
    (lines, from, to) => {
      // What is found there is not the place that was meant; only its depth tells.
      const elsewhere = lines.slice(from, to).map((line, index) => `      ${line}${index === 0 ? ' // other' : ''}`)
      const file = `${[...lines.slice(0, from), ...lines.slice(to), ...elsewhere].join('\n')}\n`
      return { ...plainCase(lines, from, to), file, expected: null }
    },
  ],
]

/** One that says something, and not what the line before says: without it the text would still be there. */
function longLine(lines: string[], from: number, to: number): number {
  return lines.findIndex(
    (line, index) => index >= from && index < to && line.trim().length > 8 && line !== lines[index - 1],
  )
}

function plainCase(lines: string[], from: number, to: number): Case {
  const region = lines.slice(from, to)
  const indent = /^ */.exec(region[0] ?? '')?.[0] ?? ''
  const replaced = [...region.slice(0, -1), `${indent}a new line with $& in it`, region.at(-1) ?? '']
  return {
    file: `${lines.join('\n')}\n`,
    oldText: region.join('\n'),
    newText: replaced.join('\n'),
    expected: `${[...lines.slice(0, from), ...replaced, ...lines.slice(to)].join('\n')}\n`,
  }
}

describe('over regions of our own source, an edit never hits a wrong place:', () => {
  test.each(MUTATIONS)('%s', (_name, least, mutate) => {
    const counts = { right: 0, refused: 0, wrong: 0 }
    for (const { lines, from, to } of regions()) {
      const { file, oldText, newText, expected } = mutate(lines, from, to)
      const result = edit(file, oldText, newText)
      if (!result.ok) counts.refused += 1
      else if (expected !== null && normal(result.text) === normal(expected)) counts.right += 1
      else counts.wrong += 1
    }
    expect(counts.wrong).toBe(0)
    const share = counts.right / (counts.right + counts.refused)
    expect(share).toBeGreaterThanOrEqual(least)
    if (least === 0) expect(counts.right).toBe(0)
  })
})

/** Spaces at line ends outside of the edit are not what these cases are about. */
function normal(text: string): string {
  return text.replace(/[ \t]+$/gm, '')
}

/** Regions of 2 to 6 lines that stand once in their file, the same in every run. */
function* regions(): Generator<{ lines: string[]; from: number; to: number }> {
  const folder = new URL('../../kit/', import.meta.url)
  for (const name of readdirSync(folder)
    .filter((file) => file.endsWith('.ts'))
    .sort()) {
    const text = readFileSync(new URL(name, folder), 'utf8')
    const lines = text.replace(/\n$/, '').split('\n')
    for (let from = 3; from + 6 < lines.length; from += 7) {
      const to = from + 2 + (from % 5)
      const region = lines.slice(from, to)
      const words = region.filter((line) => line.trim().length > 8)
      if (region[0] === '' || region.at(-1) === '' || words.length < 2) continue
      if (text.split(region.join('\n')).length === 2) yield { lines, from, to }
    }
  }
}
