#!lua flags=allow-oom
-- Note that a server did not know the scripts: see `life` in step.lua. While it was away, no lease
-- could be renewed, so all leases and shares are prolonged. Runs also when the server is out of
-- memory.
--
-- uses     step shares
-- returns  1
--
-- Atomic, because a lease that is taken back meanwhile must not come back.

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
