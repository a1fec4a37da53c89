import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createParser } from 'eventsource-parser'
import { onTestFinished } from 'vitest'
import type { Script } from '../../src/agent/provider/script-format.ts'
import { freePort, type Program, runCli, temporaryFolder, untilAnswers } from './processes.ts'
import type { Answer } from './test-hub.ts'

/** A loaded machine takes its time. */
export const START_MS = 60_000
const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

/** An agent server as a process of its own, which keeps its data and can be started again. */
export interface AgentProcess {
  url: string
  dataDir: string
  workspace: string
  /** The arguments it is started with. */
  args: string[]
  start(): Promise<Program>
  /** Any call; a body becomes JSON. Rejects when nobody answers. */
  call(method: string, path: string, body?: object, headers?: Record<string, string>): Promise<Answer>
  /** The events of a stream, until it ends, the server dies, or `signal` aborts. */
  events(path: string, signal?: AbortSignal): AsyncGenerator<RawEvent, void>
}

/** An event with its payload as it came. */
export interface RawEvent {
  id: number
  event: string
  data: string
}

/** What a node has in common with others instead of a data directory of its own. */
export interface SharedPlaces {
  workspace: string
  /** Arguments such as `--redis-url …`. */
  args: string[]
  env?: Record<string, string>
}

/** Prepares one, with a scripted model and empty folders, or on what it shares with others. */
export async function agentProcess(script: Script, shared?: SharedPlaces): Promise<AgentProcess> {
  const folder = temporaryFolder()
  const [dataDir, workspace] = [join(folder, 'data'), shared?.workspace ?? temporaryFolder()]
  const file = join(folder, 'script.json')
  writeFileSync(file, JSON.stringify(script))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const args = ['agent', '--addr', `127.0.0.1:${port}`, '--workspace', workspace]
  args.push(...(shared?.args ?? ['--data-dir', dataDir]))
  args.push('--model', `scripted:${file}`, '--log-level', 'error')
  return {
    url,
    dataDir,
    workspace,
    args,
    async start() {
      const program = runCli(args, { env: shared?.env ?? {} })
      await untilAnswers(`${url}/health`, program, START_MS)
      return program
    },
    async call(method, path, body, headers = {}) {
      const response = await fetch(url + path, {
        method,
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      const isJson = response.headers.get('content-type')?.includes('json') && text !== ''
      return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
    },
    async *events(path, signal) {
      const seen: RawEvent[] = []
      const onEvent = ({
        id,
        event = '',
        data,
      }: {
        id?: string | undefined
        event?: string | undefined
        data: string
      }) => void seen.push({ id: Number(id), event, data })
      const parser = createParser({ onEvent })
      try {
        const response = await fetch(url + path, signal === undefined ? {} : { signal })
        for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
          parser.feed(chunk)
          yield* seen.splice(0)
        }
      } catch (error) {
        if (!isBroken(error)) throw error
      }
    },
  }
}

/** A connection that could not be made or was cut. */
function isBroken(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof Error && error.name === 'AbortError')
}

/** Starts the built program so that no file of it can grow beyond so many KiB: a full disk. */
export function runOnFullDisk(args: string[], kibibytes: number): { output(): string; kill(): Promise<void> } {
  return runAfter(`ulimit -f ${kibibytes}`, args)
}

/** Starts the built program with a file open under high numbers, as a careless parent leaves it. */
export function runWithOpenFile(args: string[], path: string): { output(): string; kill(): Promise<void> } {
  return runAfter(`exec 9<'${path}' 50<'${path}' 200<'${path}'`, args)
}

/** Starts the built program in place of a shell that has done something first. */
function runAfter(words: string, args: string[]): { output(): string; kill(): Promise<void> } {
  const child = spawn('bash', ['-c', `${words}; exec "$@"`, 'bash', process.execPath, CLI, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (printed += String(chunk)))
  const ended = once(child, 'exit')
  const kill = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await ended
  }
  onTestFinished(kill)
  return { output: () => printed, kill }
}
