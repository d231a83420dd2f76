#!lua flags=allow-oom
-- Take note of a server that did not know our scripts: see `life` in step.lua. It was away and
-- nobody could renew leases, so all are prolonged, and all shares. Runs also when the server is out of memory.
--
-- uses     step shares
-- returns  1
--
-- Atomic, because a lease that is taken back meanwhile must stay so.

call('INCR', KEYS[1]:sub(1, -6) .. 'restarts')
if open_crawl() then
  for _, token in ipairs(call('ZRANGE', prefix .. 'due', 0, -1)) do
    call('ZADD', prefix .. 'due', 'XX', 'GT', whole(now + rules.lease), token)
  end
  for _, name in ipairs(shared_hosts()) do
    prolong_shares(name)
  end
end
return 1
