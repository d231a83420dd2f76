-- The hosts of a shard. Needs step.lua, pace.lua, shares.lua.
--
-- ID:hosts       hash  host -> packed numbers, see HOST_NUMBERS in stats.py, and then the
--                      priorities of its queues, the highest first; then MORE if it has others
-- ID:lower:HOST  zset  these others: lower priorities of its queues
-- ID:ready       zset  hosts with work and room, or whose room can be shared, by the moment they
--                      may next be hit: the heap
-- ID:load        zset  every host, by the number of its tasks that wait or are in flight, roughly
-- ID:slow        zset  every host that has answered, by its latency, roughly
-- ID:failing     zset  every host that has failed, by how often
--
-- A host's numbers are packed, because reading them one by one would take most of a step's time.

local MOST_PRIORITIES = 32

local hosts, names = {}, {}

-- Unpack the numbers and priorities of a host, or of a lane of it.
local function unpack_place(name, packed)
  local v = packed and cmsgpack.unpack(packed) or NEW_HOST
  local host, priorities = host_of(name, v), {}
  host.priorities, host.has_lower = priorities, v[#v] == MORE and #v > #NEW_HOST
  for i = #NEW_HOST + 1, host.has_lower and #v - 1 or #v do
    priorities[i - #NEW_HOST] = v[i]
  end
  return host
end

local function unpack_host(name, packed)
  local host = unpack_place(name, packed)
  hosts[name] = host
  names[#names + 1] = name
  return host
end

local function host_named(name)
  return hosts[name] or unpack_host(name, call('HGET', prefix .. 'hosts', name))
end

-- Read hosts that will be needed, all at once.
local function read_hosts(wanted)
  for i, packed in ipairs(ask_many('HMGET', prefix .. 'hosts', wanted)) do
    if not hosts[wanted[i]] then
      unpack_host(wanted[i], packed)
    end
  end
end

-- Keep only the highest priorities in the host's record if there are many: the cost of a step must
-- not grow with their number.
local function keep_few_priorities(host)
  local kept, lower = host.priorities, {}
  if #kept <= MOST_PRIORITIES then
    return
  end
  while #kept > MOST_PRIORITIES / 2 do
    local priority = table.remove(kept)
    lower[#lower + 1] = priority -- Its score,
    lower[#lower + 1] = priority -- and itself.
  end
  call_many('ZADD', prefix .. 'lower:' .. host.name, lower)
  host.has_lower = true
end

-- Note that a host has a queue of this priority.
local function note_priority(host, priority)
  local kept = host.priorities
  local place = #kept + 1
  while place > 1 and kept[place - 1] < priority do
    place = place - 1
  end
  if kept[place - 1] == priority then
    return
  end
  if place > #kept and host.has_lower then
    call('ZADD', prefix .. 'lower:' .. host.name, priority, priority)
    return
  end
  table.insert(kept, place, priority)
  keep_few_priorities(host)
end

-- The highest priority for which a host has a queue, or nil.
local function best_priority(host)
  if not host.priorities[1] and host.has_lower then
    local lower = prefix .. 'lower:' .. host.name
    local highest = call('ZRANGE', lower, 0, MOST_PRIORITIES / 2 - 1, 'REV')
    call_many('ZREM', lower, highest)
    for i, priority in ipairs(highest) do
      host.priorities[i] = tonumber(priority)
    end
    host.has_lower = #highest == MOST_PRIORITIES / 2
  end
  return host.priorities[1]
end

-- The time between two requests to a host: the longest of all intervals that are known.
local function interval_of(host)
  local crawl_delay = host.crawl_delay > 0 and host.crawl_delay + POLICY.slack or 0
  local own = host.penalty
  if rules.auto == 1 and own == 0 then
    own = POLICY.auto_start
  end
  return math.max(rules.interval, crawl_delay, own)
end

local function knows_robots(host)
  return host.robots_at > 0 and now < host.robots_until
end

-- Whether a host may get more than one request at a time: not before robots.txt is known, and not
-- while it is broken.
local function is_open(host)
  return (rules.robots ~= 1 or knows_robots(host)) and not is_broken(host.failures)
end

-- A host's room: how many requests may be in flight there.
local function limit_of(host)
  return is_open(host) and rules.room or 1
end

-- Whether workers may share a host's room: if it may be hit at any moment, as often as there is
-- room.
local function is_shareable(host)
  return interval_of(host) == 0 and is_open(host)
end

-- The number of leases of a host that take room themselves, because they are not shared.
local function plain_of(host)
  local record = shares_of(host.name)
  return record and math.max(host.leased - record[1], 0) or host.leased
end

-- How much of a host's room is free.
local function room_left(host)
  local used = host.leased
  if shares_of(host.name) then
    used = plain_of(host) + taken_by_shares(host.name)
  end
  return math.max(limit_of(host) - used, 0)
end

-- When tasks of a host may next be handed out, or nothing if that needs more than time to pass.
local function ready_at(host)
  if host.waiting <= host.suspects then
    return nil
  end
  if is_shareable(host) or room_left(host) > 0 then
    return host.next
  end
  if plain_of(host) >= limit_of(host) then
    return nil
  end
  local _, first_void = taken_by_shares(host.name)
  return math.max(host.next, first_void)
end

-- Free the turn of a lease that was not used, unless the host was hit or slowed down since.
local function free_turn(host, leased_at, reserved)
  if host.next == reserved and host.pushed < leased_at then
    host.next = now
  end
end

local function pack_host(host)
  local v = numbers_of(host)
  for _, priority in ipairs(host.priorities) do
    v[#v + 1] = priority
  end
  if host.has_lower then
    v[#v + 1] = MORE
  end
  return cmsgpack.pack(v)
end

-- Whether a score, which only serves to find the first few, is too far from the true value.
local function is_off(score, truth)
  return math.abs(truth - score) * 8 > score
end

-- Collect a new score for a sorted set, if it has changed.
local function note_score(scores, host, order, score)
  if host[order] ~= score then
    host[order] = score
    scores[#scores + 1] = whole(score)
    scores[#scores + 1] = host.name
  end
end

-- Write the hosts back, with their places in the sorted sets and their shares.
local function save_hosts()
  local rows, ready, load, slow, failing, removed = {}, {}, {}, {}, {}, {}
  for _, name in ipairs(names) do
    local host = hosts[name]
    local at = ready_at(host)
    if at then
      note_score(ready, host, 'ready', at)
    elseif host.ready >= 0 then
      host.ready = -1
      removed[#removed + 1] = name
    end
    if host.load < 0 or is_off(host.load, host.waiting + host.leased) then
      note_score(load, host, 'load', host.waiting + host.leased)
    end
    if host.latency > 0 and is_off(host.slow, host.latency) then
      note_score(slow, host, 'slow', host.latency)
    end
    note_score(failing, host, 'failing', host.failed)
    keep_few_priorities(host) -- An earlier version kept all of them.
    rows[#rows + 1] = name
    rows[#rows + 1] = pack_host(host)
  end
  call_many('HSET', prefix .. 'hosts', rows)
  call_many('ZREM', prefix .. 'ready', removed)
  call_many('ZADD', prefix .. 'ready', ready)
  call_many('ZADD', prefix .. 'load', load)
  call_many('ZADD', prefix .. 'slow', slow)
  call_many('ZADD', prefix .. 'failing', failing)
  save_shares()
end
