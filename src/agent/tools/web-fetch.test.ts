import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { type PinnedFetch, pinnedFetch } from './pinned-fetch.ts'
import { isPublicAddress } from './public-address.ts'
import { toolRegistry } from './registry.ts'
import { toolContext } from './tool-context.contract.ts'
import { type WebFetchOptions, webFetch } from './web-fetch.ts'

const PUBLIC = '93.184.216.34'

/** A server on loopback that stands for all of the public internet: connections to public addresses end there. */
async function internet(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  const asked: string[] = []
  const fetch: PinnedFetch = (request) => {
    asked.push(`${request.url.host} at ${request.address}`)
    return pinnedFetch({ ...request, address: '127.0.0.1' })
  }
  return { port, asked, fetch }
}

async function fetching(options: Partial<WebFetchOptions>, signal = new AbortController().signal) {
  const { context } = await toolContext()
  const registry = toolRegistry([webFetch({ allowNetwork: true, resolve: async () => [PUBLIC], ...options })])
  return (url: string) => registry.run('web_fetch', { url }, { ...context, signal })
}

test('a page is fetched from the address that was checked, under its own name', async () => {
  let host: string | undefined
  const { port, asked, fetch } = await internet((request, response) => {
    host = request.headers.host
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(
      '<html><head><title>Hi</title><script>bad()</script></head><body><h1>Gr&uuml;&#223;e</h1><p>A <b>page</b>.</p></body></html>',
    )
  })
  const run = await fetching({ fetch })
  expect(await run(`http://example.test:${port}/a?b=c`)).toEqual({
    success: true,
    text: `http://example.test:${port}/a?b=c (HTTP 200)\n\nHi\n\n# Grüße\n\nA page.`,
  })
  expect(host).toBe(`example.test:${port}`)
  expect(asked).toEqual([`example.test:${port} at ${PUBLIC}`])
})

test('texts come as they are, other things are named, failures are failures', async () => {
  const { port, fetch } = await internet((request, response) => {
    if (request.url === '/json') response.setHeader('content-type', 'application/json').end('{"a": "<b>"}')
    else if (request.url === '/latin')
      response.setHeader('content-type', 'text/plain; charset=iso-8859-1').end(Buffer.from('f\xfcr', 'latin1'))
    else if (request.url === '/gzip') response.setHeader('content-encoding', 'gzip').end(gzipSync('packed'))
    else if (request.url === '/png') response.setHeader('content-type', 'image/png').end(Buffer.from([1, 2, 3]))
    else response.writeHead(404).end('nothing here')
  })
  const run = await fetching({ fetch })
  const at = `http://example.test:${port}`
  expect((await run(`${at}/json`)).text).toContain('{"a": "<b>"}')
  expect((await run(`${at}/latin`)).text).toContain('für')
  expect((await run(`${at}/gzip`)).text).toContain('packed')
  expect((await run(`${at}/png`)).text).toContain('(3 bytes of image/png, not text.)')
  expect(await run(`${at}/no`)).toMatchObject({
    success: false,
    text: expect.stringContaining('(HTTP 404)\n\nnothing here'),
  })
})

describe('refused:', () => {
  const PRIVATE = [
    '127.0.0.1',
    '127.1.2.3',
    '0.0.0.0',
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '100.127.255.255',
    '192.0.0.1',
    '192.0.2.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fd12:3456::1',
    'fec0::1',
    'ff02::1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::ffff:a9fe:a9fe',
    '::127.0.0.1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::1',
    '2002:7f00:1::',
    '2001::1',
    '2001:db8::1',
    '100::1',
    '3fff::1',
    '5f00::1',
    '4000::1',
    '',
    'localhost',
    '1.2.3',
    'nonsense',
  ]

  test.each(PRIVATE)('the address %j', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test.each([
    '1.1.1.1',
    '8.8.8.8',
    '93.184.216.34',
    '172.32.0.1',
    '100.128.0.1',
    '2606:4700::1111',
    '2a00:1450:4001::1',
    '::ffff:8.8.8.8',
  ])('not the public address %s', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  verifies(
    'agent:tools:fetch-guard',
    'a name that leads to this machine or its network, even when it leads elsewhere as well',
    async () => {
      for (const addresses of [['127.0.0.1'], [PUBLIC, '10.0.0.1'], ['::1', PUBLIC], ['169.254.169.254'], []]) {
        const { asked, fetch } = await internet(() => {})
        const run = await fetching({ fetch, resolve: async () => addresses })
        expect(await run('http://rebind.test/')).toMatchObject({ success: false })
        expect(asked).toEqual([])
      }
    },
  )

  verifies('agent:tools:fetch-guard', 'an address in the URL, however it is written', async () => {
    const { port, asked, fetch } = await internet((_request, response) => void response.end('secret'))
    const run = await fetching({ fetch })
    for (const host of [
      '127.0.0.1',
      '2130706433',
      '0x7f.1',
      '0177.0.0.1',
      '127.1',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::]',
      '0',
      '10.1.1.1',
    ])
      expect(await run(`http://${host}:${port}/`)).toMatchObject({
        success: false,
        text: expect.stringContaining('not on the public internet'),
      })
    expect(asked).toEqual([])
  })

  test('real names of this machine, with the real resolver', async () => {
    const { port } = await internet((_request, response) => void response.end('secret'))
    const { context } = await toolContext()
    const registry = toolRegistry([webFetch({ allowNetwork: true })])
    for (const host of ['localhost', 'localhost.'])
      expect((await registry.run('web_fetch', { url: `http://${host}:${port}/` }, context)).text).not.toContain(
        'secret',
      )
  })

  test('other schemes, and what is no address', async () => {
    const run = await fetching({})
    for (const url of [
      'file:///etc/passwd',
      'ftp://example.test/',
      'gopher://x',
      'data:text/plain,hi',
      'javascript:1',
      'hello',
      '//x',
    ])
      expect(await run(url)).toMatchObject({ success: false })
  })

  verifies('agent:tools:fetch-guard', 'a redirect to an inner address, at any hop', async () => {
    for (const target of [
      'http://127.0.0.1/',
      'http://inner.test/',
      '//inner.test/x',
      'file:///etc/passwd',
      'http://[::1]/',
    ]) {
      const { port, asked, fetch } = await internet((request, response) => {
        const next = request.url === '/2' ? target : '/2'
        response.writeHead(302, { location: next }).end()
      })
      const resolve = async (host: string) => [host === 'inner.test' ? '192.168.0.1' : PUBLIC]
      const run = await fetching({ fetch, resolve })
      expect(await run(`http://outer.test:${port}/1`)).toMatchObject({ success: false })
      expect(asked).toHaveLength(2)
    }
  })

  test('a name that changes its address between two hops', async () => {
    const { port, asked, fetch } = await internet(
      (_request, response) => void response.writeHead(307, { location: '/again' }).end(),
    )
    const answers = [[PUBLIC], ['127.0.0.1']]
    const run = await fetching({ fetch, resolve: async () => answers.shift() ?? [] })
    expect(await run(`http://rebind.test:${port}/`)).toMatchObject({ success: false })
    expect(asked).toHaveLength(1)
  })
})

test('the connection goes to the checked address, whatever the name would lead to', async () => {
  const { port } = await internet((request, response) => void response.end(`for ${request.headers.host}`))
  const url = new URL(`http://no-such-name.invalid:${port}/`)
  const answer = await pinnedFetch({ url, address: '127.0.0.1', signal: new AbortController().signal, maxBytes: 1_000 })
  expect(String(answer.body)).toBe(`for no-such-name.invalid:${port}`)
})

test('redirects are followed, five of them', async () => {
  const { port, fetch } = await internet((request, response) => {
    const hop = Number(request.url?.slice(1))
    if (hop === 0) response.end('arrived')
    else response.writeHead(301, { location: `/${hop - 1}` }).end()
  })
  const run = await fetching({ fetch })
  expect((await run(`http://a.test:${port}/5`)).text).toContain('arrived')
  expect(await run(`http://a.test:${port}/6`)).toMatchObject({
    success: false,
    text: expect.stringContaining('more than 5 times'),
  })
})

test('names and passwords in a URL are not sent', async () => {
  let authorization: string | undefined
  const { port, fetch } = await internet((request, response) => {
    authorization = request.headers.authorization
    response.end('ok')
  })
  const run = await fetching({ fetch })
  expect((await run(`http://me:secret@a.test:${port}/`)).text).not.toContain('secret')
  expect(authorization).toBeUndefined()
})

test('an answer without end is cut, a bomb is refused', async () => {
  const { port, fetch } = await internet((request, response) => {
    if (request.url === '/bomb')
      return void response.setHeader('content-encoding', 'gzip').end(gzipSync(Buffer.alloc(50_000_000)))
    response.setHeader('content-type', 'text/plain')
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(60_000)));
    }
    response.on('drain', more)
    more()
  })
  const run = await fetching({ fetch })
  expect((await run(`http://a.test:${port}/`)).text).toContain('(Only the first 5242880 bytes.)')
  expect(await run(`http://a.test:${port}/bomb`)).toMatchObject({
    success: false,
    text: expect.stringContaining('too large'),
  })
})

test('a server that does not answer is given up when cancelled; one that is not there is a failure', async () => {
  const stop = new AbortController()
  const { port, fetch } = await internet(() => stop.abort())
  const run = await fetching({ fetch }, stop.signal)
  expect(await run(`http://a.test:${port}/`)).toMatchObject({ success: false })
  const gone = await fetching({
    fetch: (request) => pinnedFetch({ ...request, url: new URL('http://a.test:1/'), address: '127.0.0.1' }),
  })
  expect(await gone('http://a.test/')).toMatchObject({
    success: false,
    text: expect.stringContaining('could not be reached'),
  })
})

verifies('agent:tools:fetch-off', 'without the network it is off', async () => {
  const { context } = await toolContext()
  const registry = toolRegistry([webFetch({ allowNetwork: false })])
  expect(registry.describe()).toEqual([])
  expect(await registry.run('web_fetch', { url: 'http://a.test' }, context)).toMatchObject({ success: false })
})
