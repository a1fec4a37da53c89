import { createHash } from 'node:crypto'
import type { CallToolResult, Tool as McpTool } from '@modelcontextprotocol/client'
import { AppError } from '../../kit/errors.ts'
import { printable } from './clean-text.ts'
import { readMcpConfig } from './mcp-config.ts'
import { type McpConnection, type McpOptions, mcpConnection } from './mcp-connection.ts'
import type { Tool, ToolOutput } from './port.ts'

/** How a server did at the start. */
export interface McpServerState {
  name: string
  /** How many tools it offers; null when it did not start. */
  tools: number | null
  problem: string | null
}

/** The tools of other servers. */
export interface Mcp {
  readonly tools: Tool[]
  readonly servers: McpServerState[]
  /** Ends the programs and connections. */
  close(): Promise<void>
}

const MAX_NAME_CHARS = 64

/**
 * Connects to the servers of a configuration, all at once, and asks for their tools. One that does not start is reported and
 * has none; one that goes later answers with failures until it is back.
 */
export async function openMcp(config: unknown, options: McpOptions): Promise<Mcp> {
  const connections = [...readMcpConfig(config)].map(
    ([name, server]) => [name, mcpConnection(name, server, options)] as const,
  )
  const taken = new Set<string>()
  const opened = await Promise.all(
    connections.map(async ([name, connection]) => {
      try {
        return { name, connection, found: await connection.tools(), problem: null }
      } catch (error) {
        return { name, connection, found: null, problem: error instanceof AppError ? error.message : 'It failed.' }
      }
    }),
  )
  return {
    tools: opened.flatMap(({ name, connection, found }) =>
      (found ?? []).map((tool) => toolOf(name, tool, connection, taken)),
    ),
    servers: opened.map(({ name, found, problem }) => ({ name, tools: found?.length ?? null, problem })),
    async close() {
      await Promise.allSettled(connections.map(([, connection]) => connection.close()))
    },
  }
}

function toolOf(server: string, tool: McpTool, connection: McpConnection, taken: Set<string>): Tool {
  return {
    name: nameOf(server, tool.name, taken),
    description: tool.description ?? tool.annotations?.title ?? tool.title ?? tool.name,
    parameters: { ...tool.inputSchema },
    readOnly: tool.annotations?.readOnlyHint === true,
    source: server,
    async run(input, { signal, onProgress }) {
      return outputOf(await connection.call(tool.name, readArguments(input), signal, onProgress))
    },
  }
}

/** Names that every model accepts: letters, digits, `_` and `-`, 64 at most. */
function nameOf(server: string, tool: string, taken: Set<string>): string {
  const full = `mcp__${server.replace(/[^\w-]/g, '_')}__${tool.replace(/[^\w-]/g, '_')}`
  const fits = full.length <= MAX_NAME_CHARS && !taken.has(full)
  const digest = createHash('sha1').update(`${server}\0${tool}`).digest('hex').slice(0, 8)
  const name = fits ? full : `${full.slice(0, MAX_NAME_CHARS - 9)}_${digest}`
  taken.add(name)
  return name
}

function readArguments(input: unknown): Record<string, unknown> {
  return typeof input === 'object' && input !== null ? { ...input } : {}
}

function outputOf({ content, structuredContent, isError }: CallToolResult): ToolOutput {
  const parts = content.map(textOf)
  if (parts.length === 0 && structuredContent !== undefined) parts.push(JSON.stringify(structuredContent, null, 2))
  const text = printable(parts.join('\n'))
  return { success: isError !== true, text: text === '' ? '(It said nothing.)' : text }
}

function textOf(block: CallToolResult['content'][number]): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
    case 'audio':
      return `(${block.type} of type ${block.mimeType}, not shown)`
    case 'resource_link':
      return `${block.name}: ${block.uri}`
    case 'resource':
      return 'text' in block.resource ? block.resource.text : `(${block.resource.uri}, not text)`
  }
}
