-- Remove held blocks.
-- KEYS: list of waiting blocks; hash of held ones by token; zset of tokens by end of hold; ARGV: tokens
for _, token in ipairs(ARGV) do
  redis.call('HDEL', KEYS[2], token)
  redis.call('ZREM', KEYS[3], token)
end
return 0
