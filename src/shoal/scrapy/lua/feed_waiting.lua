#!lua flags=no-writes
-- Count the messages of a feed, including those that were taken and are not finished.
--
-- KEYS[1]  the feed: a list, a set, or a sorted set
-- KEYS[2]  the messages that were taken: a sorted set

local length = {list = 'LLEN', set = 'SCARD', zset = 'ZCARD'}
local command = length[redis.call('TYPE', KEYS[1]).ok]
return (command and redis.call(command, KEYS[1]) or 0) + redis.call('ZCARD', KEYS[2])
