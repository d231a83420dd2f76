#!lua flags=allow-oom
-- Remove the oldest entries of an inbox, if the caller still has its lock, and release the lock.
--
-- KEYS[1]  the inbox: a list to which other programs LPUSH
-- ARGV[1]  the token of the lock
-- ARGV[2]  how many entries
-- returns  1, or 0 if the caller has lost the lock
--
-- The lock is shoal:lock:{inbox}: on the same server, whatever the name of the inbox. Atomic,
-- because a reader that was suspended for too long must not remove what it has not read.

local lock = 'shoal:lock:{' .. KEYS[1] .. '}'
if redis.call('GET', lock) ~= ARGV[1] then
  return 0
end
redis.call('LTRIM', KEYS[1], 0, -1 - tonumber(ARGV[2]))
redis.call('DEL', lock)
return 1
