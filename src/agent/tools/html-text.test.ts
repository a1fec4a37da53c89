import fc from 'fast-check'
import { expect, test } from 'vitest'
import { htmlToText } from './html-text.ts'

test.each([
  ['<p>one</p><p>two</p>', 'one\n\ntwo'],
  ['<h2>A</h2>text', '## A\ntext'],
  ['<ul><li>a<li>b</ul>', '- a\n- b'],
  ['a<br>b<br/>c', 'a\nb\nc'],
  ['<a href="https://x.test/?a=1&amp;b=2">here</a>', '[https://x.test/?a=1&b=2] here'],
  ['<a href="#top">up</a>', 'up'],
  ['x<script>if (a < b) alert("<p>")</script>y<style>p{}</style>z', 'xyz'],
  ['<title>T</title><body>b', 'T\n\nb'],
  ['a <!-- <p>not</p> --> b', 'a b'],
  ['1 < 2 &lt; 3 &#x41;&#66; &Ouml;&eacute; &unknown; &#0;', '1 < 2 < 3 AB Öé &unknown; &#0;'],
  ['<table><tr><td>a</td><td>b</td></tr></table>', 'a | b |'],
  ['<p>un\n  even\t space</p>', 'un even space'],
  ['<p unclosed', ''],
  ['<!-- unclosed', ''],
  ['<script>unclosed', ''],
])('%j is read as %j', (html, text) => {
  expect(htmlToText(html)).toBe(text)
})

test('any page is read in one pass', () => {
  for (const piece of ['<', '<a ', '<!--', '<script>', '</', '&#', '<p>', '<title>', '<a href="'])
    expect(typeof htmlToText(piece.repeat(200_000))).toBe('string')
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('<', '>', '/', 'p', 'script', '!--', '-->', '&', ';', ' ', '"', 'a') }),
      (html) => typeof htmlToText(html) === 'string',
    ),
  )
})
