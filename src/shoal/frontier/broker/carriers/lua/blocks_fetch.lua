-- Take blocks and hold them: first those whose hold has expired, then the oldest waiting ones.
-- KEYS: list of waiting blocks; hash of held ones by token; zset of tokens by end of hold
-- ARGV: limit, length of the hold in ms; returns {token, block, ...}
local waiting, held, till = KEYS[1], KEYS[2], KEYS[3]
local limit, for_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local taken = {}

local function hold(token, block)
    redis.call('ZADD', till, now + for_ms, token)
    taken[#taken + 1] = token
    taken[#taken + 1] = block
end

for _, token in ipairs(redis.call('ZRANGE', till, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)) do
    local block = redis.call('HGET', held, token)
    if block then hold(token, block) else redis.call('ZREM', till, token) end
end
local room = limit - #taken / 2
if room > 0 then
    for _, block in ipairs(redis.call('LPOP', waiting, room) or {}) do
        -- The first ten bytes identify a block. A copy of a held block is discarded.
        local token = string.sub(block, 1, 10)
        if redis.call('HSET', held, token, block) == 1 then hold(token, block) end
    end
end
return taken
