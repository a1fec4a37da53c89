import type { ReadBuffer, serializeMessage, Transport } from '@modelcontextprotocol/client'
import type { Program } from '../workspace/program.ts'

/** What of the package is needed here; it is loaded late. */
export interface Framing {
  ReadBuffer: typeof ReadBuffer
  serializeMessage: typeof serializeMessage
}

const MAX_MESSAGE_BYTES = 32 * 1024 * 1024

/**
 * Messages over a program's input and output. The package has one too, but that one passes on a part of our environment and
 * ends only the program itself, not what it started.
 */
export function programTransport(program: Program, framing: Framing): Transport {
  const buffer = new framing.ReadBuffer({ maxBufferSize: MAX_MESSAGE_BYTES })
  let closed = false
  const transport: Transport = {
    async start() {
      program.output.on('data', receive)
      void program.ended.then(tellClosed)
    },
    send(message) {
      return new Promise((resolve, reject) => {
        program.input.write(framing.serializeMessage(message), (error) => (error ? reject(error) : resolve()))
      })
    },
    async close() {
      await program.stop()
      tellClosed()
    },
  }
  return transport

  function receive(chunk: Buffer): void {
    try {
      buffer.append(chunk)
    } catch (error) {
      tell(error)
      void transport.close()
      return
    }
    for (;;) {
      try {
        const message = buffer.readMessage()
        if (message === null) return
        transport.onmessage?.(message)
      } catch (error) {
        // A line that is no message has been taken off by this; the next may be one.
        tell(error)
      }
    }
  }

  function tell(error: unknown): void {
    transport.onerror?.(error instanceof Error ? error : new Error(String(error)))
  }

  function tellClosed(): void {
    if (closed) return
    closed = true
    transport.onclose?.()
  }
}
