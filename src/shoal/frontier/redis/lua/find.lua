#!lua flags=no-writes
-- Find a task, unless it waits in its host's queue: that may be long, so clients walk it.
--
-- uses     step seen
-- ARGV[2]  its fingerprint
-- returns  {seen, crawl state, where, due, values of the packed form or the reason, ...}; for a
--          dead task, `due` is when it died
--          where: dead, held back (see chains.lua), dropped, leased, delayed, suspect, or nothing
--
-- Atomic, because a task that moves during the search would be missed.

if not open_crawl() then
  return unknown()
end
local fingerprint = ARGV[2]
local seen = seen_flags({fingerprint})[1] and 1 or 0

local function found(where, due, packed)
  return {seen, state, where, due, values_of(packed)}
end

-- Whether a packed task has the fingerprint. Its bytes may also occur elsewhere, so the fingerprint
-- is compared again.
local function is_it(packed)
  return packed:find(fingerprint, 1, true) and cmsgpack.unpack(packed)[3]:sub(1, 8) == fingerprint
end

local dead = call('HGET', prefix .. 'dead', fingerprint)
if dead then
  return found('dead', call('ZSCORE', prefix .. 'died', fingerprint), dead)
end
local held_back = call('HGET', prefix .. 'blocked', fingerprint)
if held_back then
  return found('held back', '0', held_back)
end
local held = call('HGETALL', prefix .. 'held')
for i = 1, #held, 2 do
  if is_it(held[i + 1]) then
    return found('leased', by_clock(call('ZSCORE', prefix .. 'due', held[i])), held[i + 1])
  end
end
local delayed = call('ZRANGE', prefix .. 'delayed', 0, -1, 'WITHSCORES')
for i = 1, #delayed, 2 do
  if is_it(delayed[i]) then
    return found('delayed', by_clock(delayed[i + 1]), delayed[i])
  end
end
for _, packed in ipairs(call('LRANGE', prefix .. 'suspects', 0, -1)) do
  if is_it(packed) then
    return found('suspect', '0', packed)
  end
end
local dropped = call('HGET', prefix .. 'dropped', fingerprint)
if dropped then
  return {seen, state, 'dropped', '0', dropped}
end
return {seen, state, ''}
