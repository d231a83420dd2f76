#!lua flags=no-writes
-- How many messages a feed has, those in somebody's hands among them.
--
-- KEYS[1]  the feed: a list, a set, or a sorted set
-- KEYS[2]  what is in somebody's hands

local length = {list = 'LLEN', set = 'SCARD', zset = 'ZCARD'}
local command = length[redis.call('TYPE', KEYS[1]).ok]
return (command and redis.call(command, KEYS[1]) or 0) + redis.call('ZCARD', KEYS[2])
