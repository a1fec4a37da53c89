import { connect } from 'node:net'

/** What came back over a plain socket. */
export interface RawAnswer {
  /** 0 when the other side hung up without an answer. */
  status: number
  /** Names in lower case. */
  headers: Record<string, string>
  body: string
}

/** Writes bytes to a port and reads until the other side hangs up; so ask for `Connection: close`. */
export function rawRequest(port: number, bytes: string | Uint8Array): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', (error) => (chunks.length > 0 ? socket.destroy() : reject(error)))
    socket.on('close', () => resolve(parseAnswer(Buffer.concat(chunks).toString('utf8'))))
  })
}

function parseAnswer(text: string): RawAnswer {
  const [head = '', ...body] = text.split('\r\n\r\n')
  const [statusLine = '', ...lines] = head.split('\r\n')
  const headers = lines.map((line) => {
    const [name = '', ...value] = line.split(':')
    return [name.toLowerCase(), value.join(':').trim()]
  })
  return {
    status: Number(statusLine.split(' ')[1] ?? 0),
    headers: Object.fromEntries(headers),
    body: body.join('\r\n\r\n'),
  }
}
