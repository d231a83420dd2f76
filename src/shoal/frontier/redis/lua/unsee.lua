#!lua flags=allow-oom
-- Take fingerprints for new ones, should they be found again. Blocks that are outside now are offered like new
-- seeds when they come back, because their tasks may be found before: see admit.lua.
--
-- uses     step seen
-- ARGV...  fingerprints, or none
-- returns  {how many were known, the keys of all sets of known ones}
--
-- Atomic, because a block must not come back between the two.

if not open_own_crawl() then
  return unknown()
end
local fingerprints, removed, keys = arguments_from(2), 0, {}
local newest = generation()
for g = newest, rules.seen_for > 0 and newest - GENERATIONS or newest, -1 do
  local key = prefix .. 'seen:' .. g
  keys[#keys + 1] = key
  local before = call('SCARD', key)
  call_many('SREM', key, fingerprints)
  removed = removed + before - call('SCARD', key)
end
call('SET', prefix .. 'repaired', whole(now))
close_crawl()
return {removed, keys}
