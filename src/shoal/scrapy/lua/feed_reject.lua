#!lua
-- Put aside messages that no request can be made of.
--
-- KEYS[1]  what is in somebody's hands
-- KEYS[2]  the list of what was rejected, the newest first
-- ARGV[1]  how long that list may be
-- ARGV[2…] id and message, then what is to be kept of it; and so on
--
-- Atomic, because a message must be in one of the two keys. One that is not in anybody's hands any more
-- was put aside by another call already.

for i = 2, #ARGV, 2 do
  if redis.call('ZREM', KEYS[1], ARGV[i]) == 1 then
    redis.call('LPUSH', KEYS[2], ARGV[i + 1])
  end
end
redis.call('LTRIM', KEYS[2], 0, ARGV[1] - 1)
