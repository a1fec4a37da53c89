import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { gate } from '../../test/support/gate.ts'
import { type RawAnswer, rawRequest } from '../../test/support/raw-http.ts'
import { verifies } from '../../test/support/verifies.ts'
import { AppError } from './errors.ts'
import { type ErrorAnswer, type HttpServer, httpServer, isLocalCaller, listen } from './http.ts'

const STATUS: Record<string, number> = { bad_request: 400, not_found: 404, method_not_allowed: 405, too_large: 413 }
const BIG = '7497484083968569736'

let app: HttpServer
let port = 0
let onError: (error: unknown) => void = () => {}
let handled = 0

beforeAll(async () => {
  app = httpServer({ bodyLimitBytes: 1_000, errorAnswer })
  app.addHook('preHandler', async () => {
    handled += 1
  })
  app.post('/echo', async ({ body, bodyText }) => ({ body: body ?? null, bodyText }))
  app.post('/form', { config: { bodyAs: 'text' } }, async ({ body }) => ({ body }))
  app.post('/large', { bodyLimit: 2_000 }, async ({ bodyText }) => ({ length: bodyText.length }))
  app.get<{ Params: { name: string } }>('/things/:name', async ({ params }) => params)
  app.get('/things/:name/parts', async ({ params }) => params)
  app.delete('/things/:name', async ({ body }) => ({ body: body ?? null }))
  app.get('/files/*', async () => ({}))
  app.get('/local', async (request) => ({ local: isLocalCaller(request) }))
  app.get('/fails', async () => {
    throw new AppError('not_found', 'There is none.', { details: { field: 'name' } })
  })
  app.get('/breaks', async () => {
    throw new TypeError('a bug')
  })
  port = (await listen(app, { host: '127.0.0.1', port: 0 })).port
})
beforeEach(() => {
  handled = 0
  onError = () => {}
})
afterAll(() => app.close())

function errorAnswer(error: unknown): ErrorAnswer {
  onError(error)
  if (!(error instanceof AppError)) return { status: 500, body: { error: { code: 'internal' } } }
  const { code, message, details } = error
  return { status: STATUS[code] ?? 500, body: { error: { code, message, details } }, headers: { 'x-code': code } }
}

function send(method: string, path: string, { body = '', headers = '' } = {}): Promise<RawAnswer> {
  const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
  return rawRequest(
    port,
    `${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}${length}\r\n${body}`,
  )
}

function json(
  answer: RawAnswer,
): { error: { code: string; message: string; details?: unknown } } & Record<string, unknown> {
  return JSON.parse(answer.body)
}

describe('bodies', () => {
  test.each([
    '',
    'Content-Type: text/plain',
    'Content-Type: application/x-www-form-urlencoded',
    'Content-Type: ;;=odd',
  ])('JSON is read under the header "%s"', async (header) => {
    const headers = header === '' ? '' : `${header}\r\n`
    const answer = await send('POST', '/echo', { body: '{"a":"ä"}', headers })
    expect(json(answer)).toEqual({ body: { a: 'ä' }, bodyText: '{"a":"ä"}' })
  })

  test('long integers keep their digits', async () => {
    const answer = await send('POST', '/echo', { body: `{"id":${BIG}}` })
    expect(json(answer)).toEqual({ body: { id: BIG }, bodyText: `{"id":${BIG}}` })
  })

  test('nothing is coerced', async () => {
    const answer = await send('POST', '/echo', { body: '{"a":5,"b":"5","c":null}' })
    expect(json(answer).body).toEqual({ a: 5, b: '5', c: null })
  })

  test.each(['', 'Content-Length: 0\r\n', 'Content-Type: application/json\r\n'])(
    'no body is no error, with "%s"',
    async (headers) => {
      expect(json(await send('POST', '/echo', { headers }))).toEqual({ body: null, bodyText: '' })
      expect(json(await send('DELETE', '/things/x', { headers }))).toEqual({ body: null })
    },
  )

  test('chunks are put together', async () => {
    const chunked = 'Transfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n3\r\n:1}\r\n0\r\n\r\n'
    const answer = await rawRequest(port, `POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${chunked}`)
    expect(json(answer).body).toEqual({ a: 1 })
  })

  test.each(['{"a"', '{a:1}', "{'a':1}", '{"a":1}}', 'hello', '\u0000'])('broken JSON is refused: %s', async (body) => {
    const answer = await send('POST', '/echo', { body })
    expect(answer.status).toBe(400)
    expect(json(answer).error.message).toMatch(/not valid JSON/)
    expect(handled).toBe(0)
  })

  test('bytes that are not UTF-8 are refused', async () => {
    const head = Buffer.from('POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\n')
    const answer = await rawRequest(port, Buffer.concat([head, Buffer.from([0x22, 0xff, 0xfe, 0x22])]))
    expect(answer.status).toBe(400)
    expect(json(answer).error.message).toMatch(/UTF-8/)
  })

  test('a form is left as text where a route asks for it', async () => {
    const headers = 'Content-Type: application/x-www-form-urlencoded\r\n'
    expect(json(await send('POST', '/form', { body: 'token=a%20b', headers }))).toEqual({ body: 'token=a%20b' })
  })

  test('a body that is too large is refused, counted or in chunks', async () => {
    const large = 'x'.repeat(1_001)
    expect((await send('POST', '/echo', { body: large })).status).toBe(413)
    const chunked = `POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n${large}\r\n0\r\n\r\n`
    const answer = await rawRequest(port, chunked)
    expect(answer.status).toBe(413)
    expect(json(answer).error.code).toBe('too_large')
    expect(handled).toBe(0)
  })

  test('a body as large as may be is taken, and a route can allow more', async () => {
    expect((await send('POST', '/echo', { body: `"${'x'.repeat(998)}"` })).status).toBe(200)
    expect(json(await send('POST', '/large', { body: `"${'x'.repeat(1_500)}"` }))).toEqual({ length: 1_502 })
  })

  test('a caller who hangs up in the middle of a body is no bug', async () => {
    const told = gate()
    let seen: unknown
    onError = (error) => {
      seen = error
      void told.pass()
    }
    const socket = connect(port, '127.0.0.1', () => {
      socket.write('POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n{"a"', () => socket.destroy())
    })
    await told.reached
    expect(seen).toMatchObject({ name: 'AppError', code: 'bad_request' })
    expect(handled).toBe(0)
  })
})

describe('paths and methods', () => {
  test('an unknown path is a 404 that names it without its query', async () => {
    const answer = await send('GET', '/nope?token=secret')
    expect(answer.status).toBe(404)
    expect(json(answer).error).toEqual({ code: 'not_found', message: 'There is nothing at GET /nope.' })
  })

  test('an unknown path is a 404 whatever its body is', async () => {
    expect((await send('POST', '/nope', { body: '{"a"' })).status).toBe(404)
  })

  test('a very long path is cut in the answer', async () => {
    const answer = await send('GET', `/nope/${'x'.repeat(5_000)}`)
    expect(answer.status).toBe(404)
    expect(answer.body.length).toBeLessThan(400)
  })

  test.each([
    ['GET', '/echo', 'POST'],
    ['OPTIONS', '/echo', 'POST'],
    ['PUT', '/things/x', 'GET, HEAD, DELETE'],
    ['PROPFIND', '/things/x', 'GET, HEAD, DELETE'],
    ['TRACE', '/things/x', 'GET, HEAD, DELETE'],
    ['POST', '/files/a/b.txt?c', 'GET, HEAD'],
  ])('%s on %s is a 405 that says what is allowed', async (method, path, allow) => {
    const answer = await send(method, path)
    expect(answer.status).toBe(405)
    expect(json(answer).error).toMatchObject({ code: 'method_not_allowed', details: { allow } })
    expect(answer.headers['x-code']).toBe('method_not_allowed')
  })

  test('HEAD is a GET without its body, also where it fails', async () => {
    expect(await send('HEAD', '/things/x')).toMatchObject({ status: 200, body: '' })
    expect(await send('HEAD', '/nope')).toMatchObject({ status: 404, body: '' })
    expect(await send('HEAD', '/echo')).toMatchObject({ status: 405, body: '' })
  })

  test.each(['/things/%zz', '/%ff', '/things/%', `/things/${'x'.repeat(1_001)}`])(
    'a bad path is a 400: %.20s',
    async (path) => {
      const answer = await send('GET', path)
      expect(answer.status).toBe(400)
      expect(json(answer).error.code).toBe('bad_request')
    },
  )

  test('an encoded path part is decoded', async () => {
    expect(json(await send('GET', '/things/%C3%A4%2Fb'))).toEqual({ name: 'ä/b' })
  })
})

test.each(['/things/', '/things//parts'])('nothing has an empty name: %s', async (path) => {
  expect((await send('GET', path)).status).toBe(404)
})

test('a request without a Host is refused in JSON, but not one of HTTP/1.0', async () => {
  const answer = await rawRequest(port, 'GET /local HTTP/1.1\r\nConnection: close\r\n\r\n')
  expect([answer.status, json(answer).error.code]).toEqual([400, 'bad_request'])
  expect((await rawRequest(port, 'GET /local HTTP/1.0\r\n\r\n')).status).toBe(200)
})

describe('errors', () => {
  test('an AppError gets the body and the headers of the service', async () => {
    const answer = await send('GET', '/fails')
    expect(answer).toMatchObject({ status: 404, headers: { 'content-type': 'application/json; charset=utf-8' } })
    expect(json(answer).error).toEqual({ code: 'not_found', message: 'There is none.', details: { field: 'name' } })
    expect(answer.headers['x-code']).toBe('not_found')
  })

  test('a bug reaches the service as it is', async () => {
    let seen: unknown
    onError = (error) => {
      seen = error
    }
    const answer = await send('GET', '/breaks')
    expect(answer.status).toBe(500)
    expect(answer.body).not.toContain('a bug')
    expect(seen).toBeInstanceOf(TypeError)
  })
})

describe('what is no HTTP', () => {
  test.each([
    ['a malformed request line', 'garbage\r\n\r\n', 400],
    ['an unknown method', 'FOO / HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['a bad header', 'GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n', 400],
    ['two lengths', 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\nContent-Length: 8\r\n\r\n{"a":1}', 400],
    ['a length below zero', 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n', 400],
    [
      'a length and chunks',
      'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    ['the next HTTP', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['headers without end', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
  ])('%s is answered in JSON and the connection closed', async (_what, text, status) => {
    const answer = await rawRequest(port, text)
    expect(answer).toMatchObject({ status, headers: { connection: 'close', 'content-type': 'application/json' } })
    expect(json(answer).error.code).toBe('bad_request')
    expect(handled).toBe(0)
  })

  test('a caller who then never hangs up is cut off', async () => {
    const closed = gate()
    app.server.once('connection', (socket) => socket.once('close', () => void closed.pass()))
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => socket.write('garbage\r\n\r\n'))
    // What is written after the server has hung up is refused; that is the test's own business.
    socket.on('error', () => {}).resume()
    await closed.reached
    socket.destroy()
  })
})

describe('callers', () => {
  test('one on this machine is local', async () => {
    expect(json(await send('GET', '/local'))).toEqual({ local: true })
  })

  test.each([
    'X-Forwarded-For: 1.2.3.4',
    'X-Forwarded-For:',
    'X-Forwarded-For:\r\nX-Real-IP: 1.2.3.4',
    'X-Forwarded-Host: hub.example',
    'X-Forwarded-Proto: https',
    'X-Real-IP: 1.2.3.4',
    'Forwarded: for=1.2.3.4',
    'Via: 1.1 proxy',
  ])('one with the header %j is not', async (header) => {
    expect(json(await send('GET', '/local', { headers: `${header}\r\n` }))).toEqual({ local: false })
  })
})

describe('listen', () => {
  test('says that an address is taken, and how to choose another', async () => {
    const second = httpServer({ bodyLimitBytes: 1, errorAnswer })
    await expect(listen(second, { host: '127.0.0.1', port })).rejects.toMatchObject({
      code: 'address_in_use',
      message: `127.0.0.1:${port} is taken by another program; choose another with --addr.`,
    })
    await second.close()
  })

  test('says that an address cannot be used', async () => {
    const second = httpServer({ bodyLimitBytes: 1, errorAnswer })
    await expect(listen(second, { host: '192.0.2.1', port: 0 })).rejects.toMatchObject({ code: 'address_refused' })
    await second.close()
  })
})

describe('an answer that comes before the body is there', () => {
  const body = Buffer.alloc(4 * 1024 * 1024, 'x')

  test.each([
    ['too large', '/echo', { 'content-length': String(body.length) }, 413],
    ['too large, in chunks', '/echo', { 'transfer-encoding': 'chunked' }, 413],
    [
      'too large, on a connection that then ends',
      '/echo',
      { 'transfer-encoding': 'chunked', connection: 'close' },
      413,
    ],
    ['for nobody', '/nope', { 'transfer-encoding': 'chunked', connection: 'close' }, 404],
    ['for no path', '/things/%zz', { 'transfer-encoding': 'chunked', connection: 'close' }, 400],
    ['with a wish that cannot be met', '/echo', { 'content-length': String(body.length), expect: 'more' }, 417],
  ])('reaches a client that writes all of its body first: %s', async (_what, path, headers, status) => {
    for (let round = 0; round < 5; round++) {
      const call = request({ host: '127.0.0.1', port, path, method: 'POST', headers, agent: false })
      call.end(body)
      const [answer] = await once(call, 'response')
      expect(answer.statusCode).toBe(status)
      answer.resume()
      await once(call, 'close')
    }
  })

  test('is given at last where the body never comes', async () => {
    const head = 'POST /nope HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 50\r\n\r\n{'
    expect((await rawRequest(port, head)).status).toBe(404)
  })
})

verifies('up:stop:quick', async () => {
  const other = httpServer({ bodyLimitBytes: 1_000, errorAnswer })
  const at = await listen(other, { host: '127.0.0.1', port: 0 })
  const accepted = once(other.server, 'connection')
  const silent = connect(at.port, at.host)
  const ended = once(silent, 'close')
  await accepted
  await other.close()
  await ended
})
