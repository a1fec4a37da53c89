// A bot as its users write one, on the published weixin-bot-sdk: it echoes texts, types when told to, and sends every
// image back. What it sees goes to stdout, a JSON object a line.
import { createHash } from 'node:crypto'
import { WeixinBot } from 'weixin-bot-sdk'

const { CLIENT_CREDENTIALS: credentialsPath, CLIENT_CDN_URL: cdnUrl } = process.env
const tell = (event, more = {}) => console.log(JSON.stringify({ event, at: Date.now(), ...more }))

const bot = new WeixinBot({ credentialsPath, cdnUrl })
bot.on('message', (message) => handle(message).catch((error) => tell('failed', { text: error.message })))
bot.on('error', (error) => tell('error', { text: error.message }))
bot.on('session:expired', () => tell('expired'))
bot.on('stop', () => tell('stopped'))
bot.start()
tell('started')

async function handle(message) {
  tell('message', { text: message.text, type: message.type, raw: message.raw })
  if (message.type === 'image') {
    const bytes = await bot.downloadImage(message.image)
    tell('image', { sha256: createHash('sha256').update(bytes).digest('hex'), bytes: bytes.length })
    await bot.sendImage(message.from, bytes, message.contextToken)
  } else if (message.text === 'type') await bot.sendTyping(message.from)
  else if (message.text === 'stop typing') await bot.cancelTyping(message.from)
  else await bot.reply(message, `echo: ${message.text}`)
}
