import { cursorRelay } from '../../src/client/cursor-relay.ts'
import { hubAdmin } from '../../src/client/hub-client.ts'
import { sleep, timeLimit } from '../../src/kit/retry.ts'
import type { RunningSim } from '../../src/sim/main.ts'
import type { Dice } from '../support/dice.ts'

/** What users said to clients and to the bridge, and what became of it. */
export interface MessageLedger {
  /** Messages by number that a client was to get; and those it got, with how often. */
  said: Map<number, string>
  got: Map<number, number>
  /** Replies that the hub took, by their text, with their user. */
  replied: Map<string, string>
  /** Words said to the bridge, with their user. */
  words: Map<string, string>
  /** Polls that were cut off on purpose. */
  cuts: number
}

export interface MessageLoad {
  sim: RunningSim
  hubUrl: string
  dice: Dice
  ledger: MessageLedger
  /** No more is said from here on. */
  saying: AbortSignal
  /** Nobody polls any more. */
  polling: AbortSignal
}

const CLIENTS = 4
const SAY_EVERY_MS = 40
const WORD_EVERY_MS = 250
const WORD_USERS = 6
/** A user goes and another comes, so that no conversation grows without end. */
const PER_USER = 100
const REPLY_SHARE = 1 / 3
const CUT_SHARE = 0.05
/** A user who is not answered waits, as people do; the demo model quotes little more than this of what it was told. */
const MOST_UNANSWERED = 10
const ANSWER = /You said: "([\s\S]*?)"\. I can really/
const NUMBER = /#(\d+)/

export function newMessageLedger(): MessageLedger {
  return { said: new Map(), got: new Map(), replied: new Map(), words: new Map(), cuts: 0 }
}

/** Users who write, and clients who poll and answer, until they are told to stop. */
export async function runMessages(load: MessageLoad): Promise<void> {
  const admin = hubAdmin({ url: load.hubUrl })
  const tokens: string[] = []
  for (let index = 0; index < CLIENTS; index += 1) tokens.push((await admin.register(`direct${index}`)).token)
  await Promise.all([sayToClients(load), sayToBridge(load), ...tokens.map((token) => pollForEver(load, token))])
}

async function sayToClients({ sim, ledger, saying }: MessageLoad): Promise<void> {
  for (let number = 0; !saying.aborted; number += 1) {
    const client = number % CLIENTS
    const user = `d${client}-${Math.floor(number / CLIENTS / PER_USER)}`
    ledger.said.set(number, user)
    sim.control.say({ user, text: `@direct${client} #${number}` })
    await sleep(SAY_EVERY_MS, saying)
  }
}

async function sayToBridge({ sim, ledger, saying }: MessageLoad): Promise<void> {
  for (let number = 0; !saying.aborted; number += 1) {
    const word = `m${number}`
    const user = `b${number % WORD_USERS}-${Math.floor(number / WORD_USERS / PER_USER)}`
    while (!saying.aborted && (await unansweredWords(sim, ledger, user)).length >= MOST_UNANSWERED)
      await sleep(WORD_EVERY_MS, saying)
    if (saying.aborted) return
    ledger.words.set(word, user)
    sim.control.say({ user, text: `@agent ${word}` })
    await sleep(WORD_EVERY_MS, saying)
  }
}

/** The words of a user, or of all, that no answer of the bridge has told of. */
export async function unansweredWords(sim: RunningSim, { words }: MessageLedger, only?: string): Promise<string[]> {
  const asked = [...words].filter(([, user]) => only === undefined || user === only)
  const answered = new Set<string>()
  for (const user of new Set(asked.map(([, user]) => user)))
    for (const text of await botTexts(sim, user))
      for (const word of ANSWER.exec(text)?.[1]?.split(/\s+/) ?? []) answered.add(`${user} ${word}`)
  return asked.filter(([word, user]) => !answered.has(`${user} ${word}`)).map(([word]) => word)
}

/** The replies that the hub took and the messaging service never got. */
export async function unsentReplies(sim: RunningSim, { replied }: MessageLedger): Promise<string[]> {
  const seen = new Set<string>()
  for (const user of new Set(replied.values()))
    for (const text of await botTexts(sim, user)) seen.add(`${user} ${text}`)
  return [...replied].filter(([text, user]) => !seen.has(`${user} ${text}`)).map(([text]) => text)
}

async function botTexts(sim: RunningSim, user: string): Promise<string[]> {
  const { messages } = await sim.control.conversation({ user })
  return messages.filter(({ from }) => from === 'bot').map(({ text }) => text)
}

/** A client with a cursor; one poll in twenty is cut off while it waits. */
async function pollForEver({ hubUrl, dice, ledger, polling }: MessageLoad, token: string): Promise<void> {
  const relay = cursorRelay({ url: hubUrl, token })
  const replies = new Set<Promise<void>>()
  let cursor = ''
  while (!polling.aborted) {
    // Not before it has a cursor: by the protocol an empty one, said again, takes what was sent before as received.
    const mayCut = cursor !== '' && dice.chance(CUT_SHARE)
    const cut = mayCut ? timeLimit(dice.below(200), polling) : undefined
    try {
      const answer = await relay.poll(cursor, cut ?? polling)
      cursor = answer.cursor
      for (const { text, contextToken } of answer.messages) {
        const number = Number(NUMBER.exec(text)?.[1])
        ledger.got.set(number, (ledger.got.get(number) ?? 0) + 1)
        if (!dice.chance(REPLY_SHARE)) continue
        const reply = replyTo(number, contextToken)
        replies.add(reply)
        void reply.finally(() => replies.delete(reply))
      }
    } catch {
      if (cut?.aborted && !polling.aborted) ledger.cuts += 1
      else await sleep(50, polling)
    }
  }
  await Promise.all(replies)

  /** What the hub does not take is not in the ledger: the client was told so. */
  async function replyTo(number: number, contextToken: string): Promise<void> {
    const text = `reply-${number}.`
    try {
      await relay.send({ contextToken, text, clientId: `soak-${number}` })
      ledger.replied.set(text, ledger.said.get(number) ?? '')
    } catch {}
  }
}
