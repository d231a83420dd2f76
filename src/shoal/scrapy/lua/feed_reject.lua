#!lua
-- Put aside a message that no request can be made of.
--
-- KEYS[1]  what is in somebody's hands
-- KEYS[2]  the list of what was rejected, the newest first
-- ARGV[1]  how long that list may be
-- ARGV[2]  id and message in one
-- ARGV[3]  what is to be kept of it
--
-- Atomic, because a message must be in one of the two keys at any moment. One that is in nobody's hands
-- any more was put aside already: the answer to the first time was lost.

redis.call('LTRIM', KEYS[2], 0, ARGV[1] - 1) -- If that is no list, nothing has happened yet.
if redis.call('ZREM', KEYS[1], ARGV[2]) == 1 then
  redis.call('LPUSH', KEYS[2], ARGV[3])
  redis.call('LTRIM', KEYS[2], 0, ARGV[1] - 1)
end
