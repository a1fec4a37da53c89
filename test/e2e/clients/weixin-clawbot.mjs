// The same bot as in weixin-bot-sdk.mjs, on the published weixin-clawbot, which reads address, token and state folder from
// its own environment names.
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Bot, MessageKind, TypingStatus } from 'weixin-clawbot'

const { WEIXIN_CLAWBOT_STATE_ROOT: folder, CLIENT_CDN_URL: cdnBaseUrl } = process.env
const tell = (event, more = {}) => console.log(JSON.stringify({ event, at: Date.now(), ...more }))

const bot = new Bot({ cdnBaseUrl })
bot.on('message', (context) => handle(context).catch((error) => tell('failed', { text: error.message })))
bot.on('error', (error) => tell(/session expired/.test(error.message) ? 'expired' : 'error', { text: error.message }))
bot.on('end', () => tell('stopped'))
bot.start()
tell('started')

async function handle(context) {
  const { message } = context
  tell('message', { text: message.text, type: message.kind, raw: context.rawMessage })
  if (message.kind === MessageKind.IMAGE) {
    const bytes = await context.downloadMedia()
    const filePath = join(folder, 'image.png')
    writeFileSync(filePath, bytes)
    tell('image', { sha256: createHash('sha256').update(bytes).digest('hex'), bytes: bytes.length })
    await context.reply({ kind: MessageKind.IMAGE, filePath })
  } else if (message.text === 'type') await context.sendTyping(TypingStatus.TYPING)
  else if (message.text === 'stop typing') await context.sendTyping(TypingStatus.CANCEL)
  else await context.reply(`echo: ${message.text}`)
}
