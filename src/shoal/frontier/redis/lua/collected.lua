#!lua flags=allow-oom
-- Take the oldest entries out of an inbox, if it is still ours to empty.
--
-- KEYS[1]  the inbox: a list that others push to with LPUSH
-- ARGV[1]  the token under which we hold it
-- ARGV[2]  how many
-- returns  whether it was still ours
--
-- The lock is shoal:lock:{inbox}: on the same server, whatever the inbox is called. Atomic, because a
-- reader that was stopped for too long must not remove what it has not read.

local lock = 'shoal:lock:{' .. KEYS[1] .. '}'
if redis.call('GET', lock) ~= ARGV[1] then
  return 0
end
redis.call('LTRIM', KEYS[1], 0, -1 - tonumber(ARGV[2]))
redis.call('DEL', lock)
return 1
