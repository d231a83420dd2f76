#!lua flags=allow-oom
-- Prolong leases that the caller still has, and with them the shares of their workers.
--
-- uses     step pace shares hosts queue
-- ARGV...  owners, see queue.lua
-- returns  the numbers of the stale ones
--
-- Atomic, because a lease that has just been taken back must not become valid again.

if not open_crawl() then
  return unknown()
end
local stale, prolonged = {}, {}
local owners = arguments_from(2)
local held = held_by(owners)
for i, owner in ipairs(owners) do
  local task, account = held[i], held[i] and held[i][9]
  if task and not (account and account[1] == '') then -- '': its account was taken back.
    local host_name, _, _, worker, _, _, is_shared = unpack(task, 1, 7)
    call('ZADD', prefix .. 'due', 'XX', whole(now + rules.lease), owner:sub(9))
    if is_shared and prolonged[host_name] ~= worker then
      prolonged[host_name] = worker
      prolong_shares(host_name, worker)
    end
  else
    stale[#stale + 1] = i
  end
end
close_crawl()
return stale
