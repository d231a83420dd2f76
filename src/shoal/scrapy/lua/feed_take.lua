#!lua
-- Hand out messages of a feed: first those that were taken but not finished in time, then new ones.
--
-- KEYS[1]  the feed: a list (from its left), a set, or a sorted set (highest score first)
-- KEYS[2]  the messages that were taken: a sorted set of id and message, by the end of their time (ms)
-- ARGV[1]  how many messages at most
-- ARGV[2]  how many milliseconds the taker has
-- ARGV[3]  the prefix of the ids of new messages, unique to this call
-- returns  id and message in one, for each
--
-- Atomic, because a message must be in one of the two keys at any moment. A message keeps its id however
-- often it is handed out: by the id the frontier knows that it already has the message.

local feed, held = KEYS[1], KEYS[2]
local most, hold_ms, token = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local function pop(count)
  local kind = redis.call('TYPE', feed).ok
  if kind == 'list' then
    return redis.call('LPOP', feed, count)
  elseif kind == 'set' then
    return redis.call('SPOP', feed, count)
  elseif kind == 'zset' then
    local found = redis.call('ZREVRANGE', feed, 0, count - 1)
    redis.call('ZREMRANGEBYRANK', feed, -count, -1)
    return found
  elseif kind ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. feed .. ' is a ' .. kind)
  end
  return {}
end

-- Times beyond this limit mean that the clock was set back: their takers may be gone, so their time
-- is cut.
local too_late = '(' .. now_ms + hold_ms
for _, member in ipairs(redis.call('ZRANGEBYSCORE', held, too_late, '+inf', 'LIMIT', 0, most)) do
  redis.call('ZADD', held, now_ms + hold_ms, member)
end
local taken = redis.call('ZRANGEBYSCORE', held, '-inf', now_ms, 'LIMIT', 0, most)
if #taken < most then
  local new = pop(most - #taken)
  if new.err then
    return new
  end
  for i, message in ipairs(new) do
    taken[#taken + 1] = token .. string.format('%04x', i) .. message
  end
end
for _, member in ipairs(taken) do
  redis.call('ZADD', held, now_ms + hold_ms, member)
end
return taken
