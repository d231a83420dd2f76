-- Hand out messages of a list: first those that somebody took and did not bring home, then the oldest.
-- KEYS: the list, and what is in somebody's hands: id and message in one, by the end of their time
-- ARGV: how many at most, milliseconds that the taker has, what the ids of new ones begin with
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
