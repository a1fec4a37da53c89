import type { CallToolResult, Client, Tool as McpTool, Transport } from '@modelcontextprotocol/client'
import { AppError, errorText } from '../../kit/errors.ts'
import type { Log } from '../../kit/log.ts'
import { backoff, sleep } from '../../kit/retry.ts'
import type { Program, StartProgram } from '../workspace/program.ts'
import type { McpServerConfig } from './mcp-config.ts'
import { programTransport } from './mcp-transport.ts'

/** What connections to MCP servers need. */
export interface McpOptions {
  startProgram: StartProgram
  /** All that a program gets beside what its configuration says. */
  environment: { PATH: string; HOME: string }
  log: Log
  connectTimeoutMs?: number
  callTimeoutMs?: number
  now?: () => number
}

/** An MCP server, connected when it is needed. */
export interface McpConnection {
  tools(): Promise<McpTool[]>
  /** Fails with `mcp_unreachable` when it is not there; then it is tried again, later and later, on further calls. */
  call(
    name: string,
    input: Record<string, unknown>,
    signal: AbortSignal,
    onProgress?: (text: string) => void,
  ): Promise<CallToolResult>
  close(): Promise<void>
}

const CONNECT_MS = 30_000
const CALL_MS = 120_000
const LONGEST_CALL_MS = 600_000
const END_MS = 200
const MAX_REASON_CHARS = 300
const RETRY = { firstMs: 1_000, mostMs: 60_000 }

/** A connection by its configuration. Nothing is started before it is used. */
export function mcpConnection(name: string, config: McpServerConfig, options: McpOptions): McpConnection {
  const { log, connectTimeoutMs = CONNECT_MS, callTimeoutMs = CALL_MS, now = Date.now } = options
  const pause = backoff(RETRY)
  const transports = new Set<Transport>()
  let opening: Promise<Client> | undefined
  let live: Client | undefined
  let retryAt = 0
  let closed = false

  return {
    async tools() {
      const client = await connected()
      const { tools } = await client.listTools(undefined, { timeout: connectTimeoutMs })
      return tools
    },
    async call(tool, input, signal, onProgress) {
      const client = await connected()
      const progress = onProgress && {
        onprogress: ({ message }: { message?: string | undefined }) => message && onProgress(message),
      }
      try {
        const limits = { timeout: callTimeoutMs, resetTimeoutOnProgress: true, maxTotalTimeout: LONGEST_CALL_MS }
        return await client.callTool({ name: tool, arguments: input }, { signal, ...limits, ...progress })
      } catch (error) {
        throw await explain(error, client, signal)
      }
    },
    async close() {
      closed = true
      await live?.close()
      // Those that are still greeting, too.
      await Promise.allSettled([...transports].map((transport) => transport.close()))
    },
  }

  function connected(): Promise<Client> {
    if (closed) return Promise.reject(unreachable('the server stops'))
    if (opening !== undefined) return opening
    if (now() < retryAt)
      return Promise.reject(
        unreachable(`it failed before; it is tried again in ${Math.ceil((retryAt - now()) / 1_000)} s`),
      )
    const mine = open()
    opening = mine
    mine.then(
      () => pause.reset(),
      () => {
        retryAt = now() + pause.next()
        if (opening === mine) opening = undefined
      },
    )
    return mine
  }

  async function open(): Promise<Client> {
    const sdk = await import('@modelcontextprotocol/client')
    try {
      return await attempt(sdk, 'legacy')
    } catch (error) {
      // It answered, but not to the usual greeting: it may speak the newer protocol only.
      if (!(error instanceof sdk.ProtocolError || error instanceof sdk.SdkHttpError)) throw failed(error)
      return await attempt(sdk, 'auto').catch((second) => {
        throw failed(second)
      })
    }
  }

  async function attempt(sdk: typeof import('@modelcontextprotocol/client'), mode: 'legacy' | 'auto'): Promise<Client> {
    const client = new sdk.Client({ name: 'switchboard', version: '1' }, { versionNegotiation: { mode } })
    const { transport, program } = transportOf(sdk)
    transports.add(transport)
    client.onerror = (error) => log.debug('an MCP server misbehaves', { server: name, reason: shortText(error) })
    try {
      await client.connect(transport, { timeout: connectTimeoutMs })
    } catch (error) {
      // A broken pipe is often noticed before the end of the program that broke it.
      const end = program && (await Promise.race([program.ended, sleep(END_MS).then(() => null)]))
      await transport.close().catch(() => {})
      transports.delete(transport)
      if (end === null || program === null) throw error
      const words = program.lastWords()
      throw new Error(words === '' ? end : `${end} (${words})`, { cause: error })
    }
    live = client
    client.onclose = () => {
      transports.delete(transport)
      if (live !== client) return
      live = undefined
      opening = undefined
      if (!closed) log.warn('an MCP server has gone', { server: name })
    }
    return client
  }

  function transportOf(sdk: typeof import('@modelcontextprotocol/client')): {
    transport: Transport
    program: Program | null
  } {
    if (config.kind === 'address') {
      const { url, headers } = config
      return { transport: new sdk.StreamableHTTPClientTransport(url, { requestInit: { headers } }), program: null }
    }
    const { command, args, env, cwd } = config
    const program = options.startProgram({ command, args, cwd, env: { ...options.environment, ...env } })
    return { transport: programTransport(program, sdk), program }
  }

  function failed(error: unknown): AppError {
    log.warn('an MCP server does not start', { server: name, reason: shortText(error) })
    return unreachable(shortText(error))
  }

  /** What a failed call means. When an address may have forgotten us, the next call connects anew; a program that goes says so. */
  async function explain(error: unknown, client: Client, signal: AbortSignal): Promise<AppError> {
    const sdk = await import('@modelcontextprotocol/client')
    if (signal.aborted) return new AppError('cancelled', 'Cancelled.')
    if (error instanceof sdk.ProtocolError)
      return new AppError('mcp_refused', `${name} refused the call: ${error.message}`)
    if (error instanceof sdk.SdkError && error.code === sdk.SdkErrorCode.RequestTimeout)
      return new AppError('mcp_timeout', `${name} did not answer in time. The call may have been carried out.`)
    if (config.kind === 'address') void client.close().catch(() => {})
    return unreachable(`the call, which may have been carried out, ended with: ${shortText(error)}`)
  }

  function unreachable(why: string): AppError {
    return new AppError('mcp_unreachable', `The MCP server ${name} is not there: ${why}.`)
  }
}

/** Some put whole pages into their errors. */
function shortText(error: unknown): string {
  return errorText(error).slice(0, MAX_REASON_CHARS)
}
