// A client that asks for messages and never reads the answer: it says «asked», then waits to be killed.
import { connect } from 'node:net'

const [port, token] = process.argv.slice(2)
const body = '{}'
const socket = connect(Number(port), '127.0.0.1', () => {
  socket.pause()
  const head = `POST /relay/bot/getupdates HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${body.length}\r\n\r\n`
  socket.write(head + body, () => console.log('asked'))
})
setTimeout(() => process.exit(1), 30_000)
