import type { BotCounts, SimBot, StateAnswer } from '../wire/sim.ts'
import type { Bot } from './bots.ts'
import type { World } from './world.ts'

/** What has happened and what is going on. */
export function readState(world: World): StateAnswer {
  const bots = world.bots.list().map((bot) => botView(world, bot))
  const sum = (field: keyof BotCounts | 'polls_in_flight' | 'not_fetched') =>
    bots.reduce((total, bot) => total + bot[field], 0)
  return {
    bots,
    users: world.conversations.list().length,
    polls: sum('polls'),
    polls_displaced: sum('polls_displaced'),
    polls_in_flight: sum('polls_in_flight'),
    sends: sum('sends'),
    said: sum('said'),
    delivered: sum('delivered'),
    acknowledged: sum('acknowledged'),
    not_fetched: sum('not_fetched'),
    media_bytes: world.media.bytes,
    faults: world.faults.list(),
  }
}

function botView(world: World, { id, name, inbox, started, polls, displaced, sends, said }: Bot): SimBot {
  const { last, delivered, acknowledged } = inbox.position
  const inFlight = world.parking.count((call) => call.endpoint === 'getupdates' && call.botId === id)
  return {
    name,
    bot_id: id,
    started,
    polls,
    polls_displaced: displaced,
    polls_in_flight: inFlight,
    sends,
    said,
    delivered,
    acknowledged,
    not_fetched: last - delivered,
  }
}
