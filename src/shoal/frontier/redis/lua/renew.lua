#!lua flags=allow-oom
-- Prolong leases, only while they are owned.
--
-- uses     step pace hosts queue
-- ARGV...  owners, see queue.lua
-- returns  the numbers of those that are no longer owned
--
-- Atomic, because a lease that has just been taken back must not come to life again.

if not open_crawl() then
  return unknown()
end
local stale = {}
local owners = arguments_from(2)
local held = held_by(owners)
for i, owner in ipairs(owners) do
  if held[i] then
    call('ZADD', prefix .. 'due', 'XX', whole(now + rules.lease), owner:sub(9))
  else
    stale[#stale + 1] = i
  end
end
close_crawl()
return stale
