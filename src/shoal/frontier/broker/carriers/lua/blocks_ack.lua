-- Forget blocks that are held.
-- KEYS: the list, those that are held by token, until when they are; ARGV: tokens
for _, token in ipairs(ARGV) do
  redis.call('HDEL', KEYS[2], token)
  redis.call('ZREM', KEYS[3], token)
end
return 0
