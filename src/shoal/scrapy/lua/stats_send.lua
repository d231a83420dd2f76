#!lua
-- Add what a process has counted since its last call to the stats of the whole fleet.
--
-- KEYS[1]  the stats: a hash
-- KEYS[2]  the sending processes: a hash of process to the number and time (ms) of its last call
-- ARGV[1]  this process
-- ARGV[2]  the number of this call
-- ARGV[3]  milliseconds without a call after which a process is gone
-- ARGV[4]  1 if stats of a fleet that is gone are to be discarded
-- ARGV[5…] for each change: the operation, a field, a value and a first value
--
-- Atomic, because each numbered call counts once: if its answer is lost, it is sent again.

local stats, senders, sender, number = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local last = redis.call('HGET', senders, sender)
redis.call('HGET', stats, '') -- Fails here, before any change, if the key is not a hash.

local function forget_the_gone()
  local others_left = false
  local others = redis.call('HGETALL', senders)
  for i = 1, #others, 2 do
    local heard_ms = tonumber(string.match(others[i + 1], ' (%d+)$'))
    if math.abs(now_ms - heard_ms) < tonumber(ARGV[3]) then -- The clock may have been set back.
      others_left = true
    else
      redis.call('HDEL', senders, others[i])
    end
  end
  return others_left
end

local function fails(command, ...)
  local answer = redis.pcall(command, stats, ...)
  return type(answer) == 'table' and answer.err
end

local function add(field, count, first)
  redis.call('HSETNX', stats, field, first)
  if fails('HINCRBY', field, count) and fails('HINCRBYFLOAT', field, count) then
    redis.call('HSET', stats, field, count)
  end
end

local function keep(field, value, is_better)
  local old = tonumber(redis.call('HGET', stats, field) or nil)
  if not old or is_better(tonumber(value), old) then
    redis.call('HSET', stats, field, value)
  end
end

local change = {
  add = add,
  set = function(field, value) redis.call('HSET', stats, field, value) end,
  max = function(field, value) keep(field, value, function(a, b) return a > b end) end,
  min = function(field, value) keep(field, value, function(a, b) return a < b end) end,
}

if last and tonumber(string.match(last, '^(%d+)')) >= number then
  return
end
if number == 1 and not forget_the_gone() and ARGV[4] == '1' then
  redis.call('DEL', stats)
end
redis.call('HSET', senders, sender, string.format('%d %.0f', number, now_ms))
for i = 5, #ARGV, 4 do
  change[ARGV[i]](ARGV[i + 1], ARGV[i + 2], ARGV[i + 3])
end
