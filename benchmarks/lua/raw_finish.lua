-- The yardstick: release leases, and nothing else.
--
-- KEYS[1]  hash of what is held
-- KEYS[2]  sorted set of tokens by the moment they expire
-- ARGV...  tokens
-- returns  how many were held

redis.call('ZREM', KEYS[2], unpack(ARGV))
return redis.call('HDEL', KEYS[1], unpack(ARGV))
