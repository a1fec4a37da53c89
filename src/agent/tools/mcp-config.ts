import { type Static, Type } from 'typebox'
import { AppError } from '../../kit/errors.ts'
import { checker } from '../../kit/schema.ts'

const Texts = Type.Record(Type.String(), Type.String())

const ServerConfig = Type.Object({
  command: Type.Optional(Type.String({ minLength: 1 })),
  args: Type.Optional(Type.Array(Type.String())),
  env: Type.Optional(Texts),
  cwd: Type.Optional(Type.String({ minLength: 1 })),
  url: Type.Optional(Type.String({ minLength: 1 })),
  headers: Type.Optional(Texts),
  disabled: Type.Optional(Type.Boolean()),
})

const ConfigFile = Type.Object({ mcpServers: Type.Record(Type.String(), ServerConfig) })

/** A program that is started, or an address that is asked. */
export type McpServerConfig =
  | { kind: 'program'; command: string; args: string[]; env: Record<string, string>; cwd: string | undefined }
  | { kind: 'address'; url: URL; headers: Record<string, string> }

const check = checker(ConfigFile, 'file')

/** Reads the usual `{ "mcpServers": { name: { command, args, env, cwd } | { url, headers } } }`; `bad_config` says what is wrong. */
export function readMcpConfig(value: unknown): Map<string, McpServerConfig> {
  let servers: Static<typeof ConfigFile>['mcpServers']
  try {
    servers = check(value).mcpServers
  } catch (error) {
    throw wrong(error instanceof AppError ? error.message : 'it is not valid')
  }
  const used = Object.entries(servers).filter(([, server]) => server.disabled !== true)
  return new Map(used.map(([name, server]) => [name, readServer(name, server)]))
}

function readServer(
  name: string,
  { command, args = [], env = {}, cwd, url, headers = {} }: Static<typeof ServerConfig>,
): McpServerConfig {
  if ((command === undefined) === (url === undefined)) throw wrong(`${name} needs either a command or a url`)
  if (command !== undefined) return { kind: 'program', command, args, env, cwd }
  if (url === undefined || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw wrong(`the url of ${name} must be an address such as https://host/mcp`)
  return { kind: 'address', url: new URL(url), headers }
}

function wrong(what: string): AppError {
  return new AppError('bad_config', `The MCP configuration cannot be used: ${what}.`)
}
