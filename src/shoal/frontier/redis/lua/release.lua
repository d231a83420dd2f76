#!lua flags=allow-oom
-- Take back everything that a dead worker held, leases and shares.
--
-- uses     step pace shares hosts queue chains losing
-- ARGV[2]  the worker
-- returns  {state, idle, how many leases}
--
-- Atomic, because a lease is either taken back or finished, never both.

if not open_plain_crawl() then
  return unknown()
end
local worker, count = ARGV[2], 0
if state ~= 'cancelled' then
  local all = call('HGETALL', prefix .. 'held')
  for i = 1, #all, 2 do
    if cmsgpack.unpack(all[i + 1])[4] == worker then
      lose(all[i], all[i + 1])
      count = count + 1
    end
  end
  for _, name in ipairs(shared_hosts()) do
    if strike_share(name, worker) then
      host_named(name) -- It may be ready now, so save_hosts must see it.
    end
  end
end
advance_chains()
save_hosts()
close_crawl()
return {state, is_idle(), count}
