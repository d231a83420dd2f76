-- The yardstick: queues entries that were never seen, and does nothing else.
--
-- KEYS[1]  set of fingerprints
-- ARGV...  host, entry, host, entry, ...
-- returns  how many were new

local added = 0
for i = 1, #ARGV, 2 do
  if redis.call('SADD', KEYS[1], ARGV[i + 1]:sub(1, 8)) == 1 then
    redis.call('RPUSH', 'queue:' .. ARGV[i], ARGV[i + 1])
    added = added + 1
  end
end
return added
