#!lua
-- Queue tasks that were never seen. Refused as a whole when the server is out of memory.
--
-- uses     step pace shares hosts seen queue chains adding
-- ARGV[2]  packed {group, ...}, see adding.lua
-- ARGV...  the entries of the groups
-- returns  {state before, added, duplicates}
--
-- Atomic, because no other client may add the same task between the check and the queueing.

if not open_plain_crawl() then
  return unknown()
end
local was = state
if was == 'cancelled' then
  return {was, 0, 0}
end
local groups = cmsgpack.unpack(ARGV[2])
place_groups(groups, 3)
local added, duplicates = add_groups(groups)
advance_chains()
save_hosts()
if was == 'finished' and added > 0 then
  set_state('running')
end
close_crawl()
return {was, added, duplicates}
