-- The yardstick: releases leases, and does nothing else.
--
-- KEYS[1]  hash of leased entries by token
-- KEYS[2]  sorted set of tokens by expiry
-- ARGV...  tokens
-- returns  how many were leased

redis.call('ZREM', KEYS[2], unpack(ARGV))
return redis.call('HDEL', KEYS[1], unpack(ARGV))
