#!lua
-- Move a message that no request can be made of to the rejected ones.
--
-- KEYS[1]  the messages that were taken: a sorted set
-- KEYS[2]  the rejected messages: a list, the newest first
-- ARGV[1]  how long that list may be
-- ARGV[2]  id and message in one
-- ARGV[3]  the record of the rejected message
--
-- Atomic, because a message must be in one of the two keys at any moment. If it is no longer among the
-- taken ones, it was moved before, and the answer to that call was lost.

redis.call('LTRIM', KEYS[2], 0, ARGV[1] - 1) -- Fails, before any change, if it is no list.
if redis.call('ZREM', KEYS[1], ARGV[2]) == 1 then
  redis.call('LPUSH', KEYS[2], ARGV[3])
  redis.call('LTRIM', KEYS[2], 0, ARGV[1] - 1)
end
