import { createHash } from 'node:crypto'

/** A client program that people point at a hub. */
export const PASTE_TARGETS = ['weixin-bot-sdk', 'weixin-clawbot', 'openclaw', 'generic'] as const
export type PasteTarget = (typeof PASTE_TARGETS)[number]

/** What a client needs to know of its hub. */
export interface PasteInput {
  name: string
  token: string
  url: string
  /** Where media goes, when the hub relays it. */
  cdnUrl?: string
  now: number
}

/** A text to paste, and where it belongs. */
export interface Paste {
  /** A file's path, or null for lines that go into a shell or program. */
  file: string | null
  text: string
}

/** What to paste where, for one client program. */
export function pastesFor(target: PasteTarget, input: PasteInput): Paste[] {
  switch (target) {
    case 'weixin-bot-sdk':
      return botSdk(input)
    case 'weixin-clawbot':
      return [{ file: null, text: environment('WEIXIN_CLAWBOT', input) }]
    case 'openclaw':
      return openClaw(input)
    case 'generic':
      return [
        { file: null, text: `RELAY_URL=${quoted(input.url)}\nRELAY_TOKEN=${quoted(input.token)}` },
        {
          file: null,
          text: `curl -X POST ${input.url}/relay/bot/getupdates -H ${quoted(`Authorization: Bearer ${input.token}`)} -d '{}'`,
        },
      ]
  }
}

function botSdk({ name, token, url, now }: PasteInput): Paste[] {
  const credentials = { botToken: token, botId: botIdOf(name), baseUrl: url, userId: '', savedAt: iso(now) }
  return [
    { file: '.wx-credentials.json', text: JSON.stringify(credentials, null, 2) },
    {
      file: null,
      text: `const bot = new WeixinBot({ credentialsPath: '.wx-credentials.json' })\nbot.start() // no login(): the file has the token`,
    },
  ]
}

/** The vendor's plugin reads an index of accounts and a file for each; it has no setting for address or token. */
function openClaw({ name, token, url, now }: PasteInput): Paste[] {
  const id = botIdOf(name).replace(/[^a-z0-9]+/g, '-')
  const folder = '~/.openclaw/openclaw-weixin'
  return [
    {
      file: `${folder}/accounts/${id}.json`,
      text: JSON.stringify({ token, savedAt: iso(now), baseUrl: url }, null, 2),
    },
    { file: `${folder}/accounts.json`, text: JSON.stringify([id], null, 2) },
  ]
}

function environment(prefix: string, { token, url }: PasteInput): string {
  return `${prefix}_TOKEN=${quoted(token)}\n${prefix}_BASE_URL=${quoted(url)}`
}

/** In the form of the service's own ids, and the same for a client at every time. */
function botIdOf(name: string): string {
  return `${createHash('sha256').update(name).digest('hex').slice(0, 12)}@im.bot`
}

function iso(atMs: number): string {
  return new Date(atMs).toISOString()
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
