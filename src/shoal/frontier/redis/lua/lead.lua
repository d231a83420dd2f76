-- Lead, go on leading, resign, or ask who leads.
--
-- KEYS[1]  hash  holder; term: a number that is never used again; until
-- ARGV[1]  the time in microseconds, or nothing: then the server's own clock is used
-- ARGV[2]  who wants to lead; empty: only ask who leads
-- ARGV[3]  for how long, in microseconds; 0 resigns
-- returns  {who leads now, in which term}, or nothing
--
-- Atomic, because if two find that nobody leads, only one may. Not among the scripts that are
-- loaded: a server that does not know those is a new one, and workers must notice that.

local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local stored = redis.call('HMGET', KEYS[1], 'holder', 'term', 'until')
local was, term, till = stored[1] or '', tonumber(stored[2]) or 0, tonumber(stored[3]) or 0
local who, lasts = ARGV[2], tonumber(ARGV[3])
if lasts > 0 and till > now + lasts then
  -- Too late an end: the clock was set back, and the leader may be dead.
  till = now + lasts
  redis.call('HSET', KEYS[1], 'until', string.format('%.0f', till))
end
if who == '' or now < till and was ~= who then
  return now < till and {was, term} or {}
end
if lasts == 0 then
  redis.call('HSET', KEYS[1], 'until', 0)
  return {}
end
-- A leader whose time has run out keeps its term if nobody else has led since.
if was ~= who or till == 0 then
  term = term + 1
end
local until_then = string.format('%.0f', now + lasts)
redis.call('HSET', KEYS[1], 'holder', who, 'term', term, 'until', until_then)
return {who, term}
