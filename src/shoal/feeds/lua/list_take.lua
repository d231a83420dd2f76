-- Take messages from a list and hold them: first those whose hold has expired, then the oldest.
-- KEYS: the list; zset of held messages, each with its id in front, by the end of the hold
-- ARGV: limit, length of the hold in ms, prefix of new ids; returns {id and message, ...}
local list, held = KEYS[1], KEYS[2]
local most, hold_ms, token = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local taken = redis.call('ZRANGE', held, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
if #taken < most then
    for i, message in ipairs(redis.call('RPOP', list, most - #taken) or {}) do
        taken[#taken + 1] = token .. string.format('%04x', i) .. message
    end
end
for _, member in ipairs(taken) do
    redis.call('ZADD', held, now + hold_ms, member)
end
return taken
