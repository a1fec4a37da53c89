import { luaScript } from '../../kit/redis/connect-redis.ts'

/**
 * One step of a session: everything or nothing. It is refused as `fenced` when the claim it shows is no longer the session's,
 * and as `changed` when the session is not as it was when the step was worked out: then it is worked out anew.
 *
 * KEYS: state lease generation events transcript runs order queue receipt segments
 * ARGV: version, claim (`hold` | `grant` | `none`), generation, life of a lease, `1` to give the claim back, moving part of
 * the session, most events, most bytes, id of a run that is new, what to do to the queue (`push` | `first` | `pop` | ``), receipt,
 * life of the receipt; then three lists, each after its length: events (about, payload), messages, runs (id, JSON)
 */
export const COMMIT = luaScript(`
local version = redis.call('HGET', KEYS[1], 'version')
if not version then return {'gone'} end
local at = 0
local function take() at = at + 1 return ARGV[at] end
local expected, claim, generation, life, ends = take(), take(), take(), take(), take()
local moving, maxEvents, maxBytes = take(), tonumber(take()), tonumber(take())
local newRun, queue, receipt, receiptLife = take(), take(), take(), take()
if claim == 'hold' and redis.call('GET', KEYS[2]) ~= generation then return {'fenced'} end
if version ~= expected then return {'changed'} end

if claim == 'grant' then
  generation = redis.call('INCR', KEYS[3])
  redis.call('SET', KEYS[2], generation, 'PX', life)
end
local log = redis.call('HMGET', KEYS[1], 'newest', 'oldest', 'hot', 'bytes')
local newest, oldest, hot, bytes = tonumber(log[1]), tonumber(log[2]), tonumber(log[3]), tonumber(log[4])
for _ = 1, tonumber(take()) do
  newest = newest + 1
  local about, data = take(), take()
  redis.call('XADD', KEYS[4], newest .. '-0', 'a', about, 'd', data)
  bytes = bytes + #data
end
local first = hot
while newest > hot and (newest - hot + 1 > maxEvents or bytes > maxBytes) do
  local event = redis.call('XRANGE', KEYS[4], '-', '+', 'COUNT', 1)[1]
  redis.call('XDEL', KEYS[4], event[1])
  bytes = bytes - #event[2][4]
  hot = hot + 1
end
-- What lies before a gap cannot be read: a reader would miss something unawares.
if hot > first then
  oldest = hot
  redis.call('DEL', KEYS[10])
end
for _ = 1, tonumber(take()) do redis.call('RPUSH', KEYS[5], take()) end
for _ = 1, tonumber(take()) do
  local id, run = take(), take()
  redis.call('HSET', KEYS[6], id, run)
end
if newRun ~= '' then redis.call('RPUSH', KEYS[7], newRun) end
if queue == 'push' then redis.call('RPUSH', KEYS[8], newRun) end
if queue == 'first' then redis.call('LPUSH', KEYS[8], newRun) end
if queue == 'pop' then redis.call('LPOP', KEYS[8]) end
if receipt ~= '' then redis.call('SET', KEYS[9], receipt, 'PX', receiptLife) end
if ends == '1' then redis.call('DEL', KEYS[2]) end
redis.call('HSET', KEYS[1], 'version', version + 1, 'moving', moving,
  'newest', newest, 'oldest', oldest, 'hot', hot, 'bytes', bytes)
return {'ok', generation}`)

/** A new session, unless it is there. KEYS: state transcript. ARGV: fixed, moving, messages… */
export const CREATE = luaScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'version', 1, 'fixed', ARGV[1], 'moving', ARGV[2], 'newest', 0, 'oldest', 1, 'hot', 1,
  'bytes', 0, 'kept', 0)
for at = 3, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[at]) end
return 1`)

/**
 * Forgets a session. Its generation stays for a while: who comes late with an old claim must not meet a new one of the same
 * number. KEYS: generation, then all others of the session, state first. ARGV: seconds
 */
export const REMOVE = luaScript(`
if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
redis.call('EXPIRE', KEYS[1], ARGV[1])
for at = 2, #KEYS do redis.call('DEL', KEYS[at]) end
return 1`)

/** A time in microseconds that was never given before, also when the clock is set back. */
const TICK = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[2]) or 0)
if now <= last then now = last + 1 end
local text = string.format('%.0f', now)
redis.call('SET', KEYS[2], text)`

/** Adds to the index if there is room or it is there. KEYS: index clock. ARGV: id, most */
export const ENLIST = luaScript(`
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 1 end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
${TICK}
redis.call('ZADD', KEYS[1], text, ARGV[1])
return 1`)

/** Marks a session in one or more sorted sets; returns the mark. KEYS: sorted set, clock, more sorted sets. ARGV: id */
export const MARK = luaScript(`${TICK}
for at = 1, #KEYS do
  if at ~= 2 then redis.call('ZADD', KEYS[at], text, ARGV[1]) end
end
return text`)

/** Takes a mark away if no newer one was made. KEYS: sorted set. ARGV: id, mark */
export const UNMARK = luaScript(`
local mark = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not mark or tonumber(mark) ~= tonumber(ARGV[2]) then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[1])`)

/** The time, then members and their marks from a place on. KEYS: sorted set. ARGV: first, last */
export const MARKS = luaScript(`
local time = redis.call('TIME')
local found = redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'WITHSCORES')
table.insert(found, 1, string.format('%.0f', time[1] * 1000000 + time[2]))
return found`)

/** Replaces a text if it still is as it was seen (empty: not there); an empty one is removed. KEYS: text. ARGV: seen, new, life */
export const SWAP = luaScript(`
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1`)

/** What a session says, in one look: its objects, then its messages. KEYS: chunks transcript */
export const TRANSCRIPT = luaScript(`
return {redis.call('LRANGE', KEYS[1], 0, -1), redis.call('LRANGE', KEYS[2], 0, -1)}`)

/**
 * Takes out of Redis what objects hold now, if it still begins where it began. What was added meanwhile stays.
 * KEYS: state events transcript segments chunks.
 * ARGV: segment (or empty), its first and last number, its bytes; chunk (or empty), messages before it, messages in it
 */
export const ARCHIVE = luaScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 'gone' end
local found = redis.call('HMGET', KEYS[1], 'hot', 'kept')
if ARGV[1] ~= '' and found[1] == ARGV[2] then
  local hot = string.format('%.0f', ARGV[3] + 1)
  redis.call('RPUSH', KEYS[4], ARGV[1])
  redis.call('XTRIM', KEYS[2], 'MINID', hot)
  redis.call('HSET', KEYS[1], 'hot', hot)
  redis.call('HINCRBY', KEYS[1], 'bytes', -ARGV[4])
end
if ARGV[5] ~= '' and found[2] == ARGV[6] then
  redis.call('RPUSH', KEYS[5], ARGV[5])
  redis.call('LTRIM', KEYS[3], ARGV[7], -1)
  redis.call('HINCRBY', KEYS[1], 'kept', ARGV[7])
end
return 'done'`)
