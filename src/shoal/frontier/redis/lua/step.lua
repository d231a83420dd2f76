-- One atomic step on one shard of a crawl: its clock, its hash, its end. Part of every script.
--
-- KEYS[1]  the hash of the shard, shoal:{tag}:crawl. All other keys of the shard share its tag, so
--          they are on the same server: shoal:{tag}:ID:..., where ID is the crawl's own. A crawl
--          that is started over has another ID, so no key of the old one can get in its way.
-- ARGV[1]  the time in microseconds, or nothing: then the server's own clock is used.
--
-- Times are whole microseconds, which a Lua number holds exactly. Names in capitals that no script
-- declares come from Python: see prelude.py.
--
-- `now` never goes back, see clock.py: if the clock is set back, `now` is `counts.ahead` of it from
-- then on. `clock` is the clock itself: it is stored where people read when something happened.

local call = redis.call
local clock = tonumber(ARGV[1])
if not clock then
  local time = call('TIME')
  clock = time[1] * 1000000 + time[2]
end
local now = clock

-- The crawl. Its rules and its counts are packed, which saves most of the time it takes to read
-- them. `rules` do not change within a step. `counts` are written back at its end: the values of
-- PLACED in their order, and then each of the others after its name, so that counters stay that
-- only a later version knows.
local named = {}

-- How many values are passed to a command at a time: `unpack` has room for some 8,000. The number
-- is even, so that pairs stay together.
local AT_ONCE = 1000

local state, id, layout, sealed, prefix, rules, counts, tried_before
local holdings, failures = {}, {}
local is_carrier = false -- Whether this form of the script is for clients with a carrier.

local function whole(number)
  return string.format('%.0f', number)
end

-- Call a command on a key, with any number of values.
local function call_many(command, key, values)
  for first = 1, #values, AT_ONCE do
    call(command, key, unpack(values, first, math.min(first + AT_ONCE - 1, #values)))
  end
end

-- Call a command that returns an answer for each value. Returns all answers.
local function ask_many(command, key, values)
  local answers = {}
  for first = 1, #values, AT_ONCE do
    local last = math.min(first + AT_ONCE - 1, #values)
    for i, answer in ipairs(call(command, key, unpack(values, first, last))) do
      answers[first + i - 1] = answer
    end
  end
  return answers
end

-- The values of a packed record, see queue.lua.
local function values_of(packed)
  return unpack(cmsgpack.unpack(packed), 1, 7)
end

-- The arguments of the script from the given one on, as a list.
local function arguments_from(first)
  local arguments = {}
  for i = first, #ARGV do
    arguments[#arguments + 1] = ARGV[i]
  end
  return arguments
end

local function read_clock()
  now = clock + counts.ahead
  if now < counts.latest - POLICY.clock_jump then
    now, counts.ahead = counts.latest, counts.latest - clock
  end
end

-- A moment by the server's clock, as callers are told it.
local function by_clock(moment)
  return whole(moment - counts.ahead)
end

-- The same as Stats.tried: the pages that max_pages and the rate count.
local function pages_tried()
  return counts.done + counts.dead
end

-- Read the crawl. False if it does not exist, or if only a later version knows its layout: then
-- nothing more of it is read. See layout.py.
local function open_crawl()
  local stored = call('HMGET', KEYS[1], 'id', 'layout', 'state', 'sealed', 'numbers', 'counts')
  id, layout = stored[1], stored[2]
  if not id or layout and (tonumber(layout) or math.huge) > POLICY.layout then
    return false
  end
  state, sealed = stored[3], stored[4] == '1'
  prefix = KEYS[1]:sub(1, -6) .. id .. ':'
  rules, counts = cmsgpack.unpack(stored[5]), {}
  local values = stored[6] and cmsgpack.unpack(stored[6]) or {}
  for i, name in ipairs(PLACED) do
    counts[name] = values[i] or 0
  end
  for _, name in ipairs(NAMED) do
    counts[name], named[#named + 1] = 0, name
  end
  for i = #PLACED + 1, #values, 2 do
    if not counts[values[i]] then
      named[#named + 1] = values[i]
    end
    counts[values[i]] = values[i + 1]
  end
  tried_before = pages_tried()
  read_clock()
  return true
end

-- Read the crawl, for a script that changes what waits. False if it does not exist, or if it has a
-- carrier and the caller has none, so that it could not bring tasks back.
local function open_own_crawl()
  return open_crawl() and (is_carrier or not rules.window)
end

-- Read the crawl, for a script that knows nothing of exits. Also false if the crawl has pools: then
-- the other form of the script is called, see scripts.py.
local function open_plain_crawl()
  return open_own_crawl() and rules.pools ~= 1
end

-- The error to return if the crawl could not be opened.
local function unknown()
  if id and not rules then
    return redis.error_reply('NEWER ' .. layout)
  end
  if id and rules.window and not is_carrier then
    return redis.error_reply('CARRIED its tasks travel')
  end
  return redis.error_reply(id and 'BYEXITS it has pools' or 'UNKNOWNCRAWL no such crawl')
end

-- Identifies this life of the server: how often clients found that it did not know the scripts, and
-- its replication ID, which changes when a replica takes over. A server that was restarted or took
-- over may have lost the last moments, so what clients remember is void.
local function life()
  local info = redis.pcall('INFO', 'replication') -- Not every user is allowed to call it.
  local history = type(info) == 'string' and info:match('master_replid:(%x+)') or ''
  return (call('GET', KEYS[1]:sub(1, -6) .. 'restarts') or '0') .. ' ' .. history
end

-- How many leases a worker has.
local function held_count(worker)
  return (tonumber(call('HGET', prefix .. 'holding', worker)) or 0) + (holdings[worker] or 0)
end

-- Note that a worker was given leases, or lost some.
local function note_holding(worker, change)
  holdings[worker] = (holdings[worker] or 0) + change
end

local function save_holdings()
  for worker, change in pairs(holdings) do
    local count = held_count(worker)
    if change ~= 0 and count > 0 then
      call('HSET', prefix .. 'holding', worker, count)
    elseif change ~= 0 then
      call('HDEL', prefix .. 'holding', worker)
    end
  end
  holdings = {}
end

-- Note that a try has failed at a host, or in a lane of it.
--
-- ID:failures     hash  kind -> how many tries have ever failed with it
-- ID:failures_at  hash  kind, a space, host -> how many tries have ever failed with it at the host
local function note_failure(kind, place_name)
  local of_host = kind .. ' ' .. place_name:match('[^ ]*$')
  failures[of_host] = (failures[of_host] or 0) + 1
end

local function save_failures()
  for name, count in pairs(failures) do
    call('HINCRBY', prefix .. 'failures', name:match('^[^ ]*'), count)
    call('HINCRBY', prefix .. 'failures_at', name, count)
  end
end

local function set_state(new_state)
  state = new_state
  call('HSET', KEYS[1], 'state', state)
  if OVER[state] then
    call('HSET', KEYS[1], 'finished_at', whole(clock))
  else
    call('HDEL', KEYS[1], 'finished_at')
  end
end

local function pages_left()
  return rules.max_pages == 0 and math.huge or rules.max_pages - pages_tried() - counts.leased
end

-- 1 if this shard has nothing left to do, now or later; else 0.
local function is_idle()
  if not sealed or counts.leased > 0 then
    return 0
  end
  local full = rules.max_pages > 0 and pages_tried() >= rules.max_pages
  return (full or counts.waiting + counts.delayed == 0) and 1 or 0
end

-- Write the crawl back. If this is its only shard, the crawl ends here. If there are several, none
-- knows enough, and the client asks them all (crawl.py).
local function close_crawl()
  if pages_tried() > tried_before and now - counts.sample_at >= POLICY.sample_every then
    counts.earlier_at, counts.earlier_done = counts.sample_at, counts.sample_done
    counts.sample_at, counts.sample_done = now, pages_tried()
  end
  counts.latest = math.max(counts.latest, now)
  save_holdings()
  save_failures()
  local values = {}
  for i, name in ipairs(PLACED) do
    values[i] = counts[name]
  end
  for _, name in ipairs(named) do
    values[#values + 1] = name
    values[#values + 1] = counts[name]
  end
  call('HSET', KEYS[1], 'counts', cmsgpack.pack(values))
  if LIVE[state] and rules.shards == 1 and is_idle() == 1 then
    set_state('finished')
  end
end
