#!lua flags=allow-oom
-- Forget fingerprints, so that they are new if they are found again. The entries of blocks that are
-- outside now are added like new seeds when they come back, because their tasks may be found before
-- that: see admit.lua.
--
-- uses     step seen
-- ARGV...  fingerprints, or none
-- returns  {how many were known, the keys of all sets of known fingerprints}
--
-- Atomic, because no block may come back between the removal and the note of its time.

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
