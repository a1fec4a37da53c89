/**
 * A real MCP server for the tests. Run as a program it speaks over its input and output; `serveHttp` serves it at an address.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { pathToFileURL } from 'node:url'
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

/** What the server saw of its callers. */
export interface Seen {
  headers: IncomingMessage['headers'][]
}

const empty = { type: 'object' as const, properties: {} }

/** A server with tools of every kind. */
export function fixtureServer(): McpServer {
  const server = new McpServer({ name: 'fixture', version: '1.0.0' })
  const pair = {
    type: 'object' as const,
    properties: { a: { type: 'number' as const }, b: { type: 'number' as const } },
    required: ['a', 'b'],
  }
  server.registerTool(
    'add',
    {
      description: 'Adds.',
      inputSchema: fromJsonSchema<{ a: number; b: number }>(pair),
      annotations: { readOnlyHint: true },
    },
    async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }),
  )
  server.registerTool('environment', { description: 'Tells.', inputSchema: fromJsonSchema(empty) }, async () => ({
    content: [{ type: 'text', text: JSON.stringify({ env: process.env, cwd: process.cwd(), pid: process.pid }) }],
  }))
  server.registerTool('fail', { description: 'Fails.', inputSchema: fromJsonSchema(empty) }, async () => ({
    content: [{ type: 'text', text: 'it did not work' }],
    isError: true,
  }))
  server.registerTool('picture', { description: 'Shows.', inputSchema: fromJsonSchema(empty) }, async () => ({
    content: [
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
      { type: 'text', text: 'a \u001b[31mpicture' },
    ],
  }))
  server.registerTool(
    'hang',
    { description: 'Never answers.', inputSchema: fromJsonSchema(empty) },
    () => new Promise(() => {}),
  )
  server.registerTool('die', { description: 'Ends.', inputSchema: fromJsonSchema(empty) }, () => process.exit(3))
  server.registerTool('odd.name', { description: 'x'.repeat(10), inputSchema: fromJsonSchema(empty) }, async () => ({
    content: [],
    structuredContent: { fine: true },
  }))
  return server
}

/** Serves it on loopback; `port` 0 takes a free one. With `reject` it speaks the newer protocol only. */
export async function serveHttp(
  port = 0,
  legacy: 'stateless' | 'reject' = 'stateless',
): Promise<{ url: string; port: number; seen: Seen; close(): Promise<void> }> {
  const handler = createMcpHandler(() => fixtureServer(), { legacy })
  const seen: Seen = { headers: [] }
  const http = createServer(async (request, response) => {
    seen.headers.push(request.headers)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = request.method === 'GET' || request.method === 'DELETE' ? {} : { body: Buffer.concat(chunks) }
    const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)])
    const answer = await handler.fetch(
      new Request(`http://127.0.0.1${request.url}`, { method: request.method ?? 'GET', headers, ...body }),
    )
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    if (answer.body !== null) for await (const chunk of answer.body) response.write(chunk)
    response.end()
  }).listen(port, '127.0.0.1')
  await once(http, 'listening')
  const address = http.address()
  if (typeof address !== 'object' || address === null) throw new Error('no address')
  const close = async () => {
    http.closeAllConnections()
    http.close()
    await once(http, 'close')
  }
  return { url: `http://127.0.0.1:${address.port}/mcp`, port: address.port, seen, close }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  serveStdio(() => fixtureServer())
