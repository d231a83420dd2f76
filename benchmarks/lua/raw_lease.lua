-- The yardstick: hands out entries of some hosts, and does nothing else.
--
-- KEYS[1]  hash of leased entries by token
-- KEYS[2]  sorted set of tokens by expiry
-- ARGV[1]  prefix of the tokens
-- ARGV[2]  when they expire
-- ARGV[3]  how many to lease per host
-- ARGV...  hosts
-- returns  the entries; their tokens are numbered from 1 on

local held, due, granted = {}, {}, {}
for i = 4, #ARGV do
  for _, entry in ipairs(redis.call('LPOP', 'queue:' .. ARGV[i], ARGV[3]) or {}) do
    granted[#granted + 1] = entry
    local token = ARGV[1] .. #granted
    held[#held + 1], held[#held + 2] = token, entry
    due[#due + 1], due[#due + 2] = ARGV[2], token
  end
end
if #granted > 0 then
  redis.call('HSET', KEYS[1], unpack(held))
  redis.call('ZADD', KEYS[2], unpack(due))
end
return granted
