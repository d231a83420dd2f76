-- The hosts of a shard. Needs step.lua, pace.lua.
--
-- ID:hosts    hash  host -> packed numbers, see pack_host, and then the priorities of its queues
-- ID:ready    zset  hosts with work and room, by the moment they may next be hit: the heap
-- ID:load     zset  every host, by the tasks it has waiting or in flight, roughly
-- ID:slow     zset  every host that has answered, by its latency, roughly
-- ID:failing  zset  every host that has failed, by how often
--
-- A host's numbers are packed, because reading them one by one would take most of a step's time.

-- The last four are its scores in the sorted sets; -1: it is not there.
local NEW_HOST = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, 0}
local AT_ONCE = 1000

local hosts, names = {}, {}

-- Written out, here and in pack_host: a loop over the names takes twice as long.
local function unpack_host(name, packed)
  local v = packed and cmsgpack.unpack(packed) or NEW_HOST
  local host = {
    name = name,
    waiting = v[1], suspects = v[2], leased = v[3], next = v[4], penalty = v[5], pushed = v[6],
    crawl_delay = v[7], robots_at = v[8], robots_until = v[9], done = v[10], failed = v[11],
    failures = v[12], broken_at = v[13], latency = v[14],
    ready = v[15], load = v[16], slow = v[17], failing = v[18],
    priorities = {unpack(v, 19)},
  }
  hosts[name] = host
  names[#names + 1] = name
  return host
end

local function host_named(name)
  return hosts[name] or unpack_host(name, call('HGET', prefix .. 'hosts', name))
end

-- Read hosts that will be needed, all at once.
local function read_hosts(wanted)
  if #wanted > 0 then
    for i, packed in ipairs(call('HMGET', prefix .. 'hosts', unpack(wanted))) do
      if not hosts[wanted[i]] then
        unpack_host(wanted[i], packed)
      end
    end
  end
end

-- Note that a host has a queue of this priority. They are kept with the highest first.
local function note_priority(host, priority)
  local place = 1
  for i, known in ipairs(host.priorities) do
    if known == priority then
      return
    end
    if known > priority then
      place = i + 1
    end
  end
  table.insert(host.priorities, place, priority)
end

-- The time between two requests to a host: the most careful of all that is known.
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

-- How many more requests may be in flight: one until robots.txt is known, and one to a host that
-- only fails.
local function room_of(host)
  local limit = rules.room
  if rules.robots == 1 and not knows_robots(host) or is_broken(host.failures) then
    limit = 1
  end
  return math.max(limit - host.leased, 0)
end

-- A lease was not used: its slot is free again, if nobody was served or told to wait since.
local function free_slot(host, leased_at, reserved)
  if host.next == reserved and host.pushed < leased_at then
    host.next = now
  end
end

local function pack_host(host)
  return cmsgpack.pack({
    host.waiting, host.suspects, host.leased, host.next, host.penalty, host.pushed,
    host.crawl_delay, host.robots_at, host.robots_until, host.done, host.failed,
    host.failures, host.broken_at, host.latency,
    host.ready, host.load, host.slow, host.failing,
    unpack(host.priorities),
  })
end

-- Whether a score that only serves to find the first few is too far from the truth.
local function is_off(score, truth)
  return math.abs(truth - score) * 8 > score
end

-- Collects what a sorted set is to be told.
local function note_score(scores, host, order, score)
  if host[order] ~= score then
    host[order] = score
    scores[#scores + 1] = whole(score)
    scores[#scores + 1] = host.name
  end
end

local function save_scores(order, scores)
  for first = 1, #scores, AT_ONCE do
    local last = math.min(first + AT_ONCE - 1, #scores)
    call('ZADD', prefix .. order, unpack(scores, first, last))
  end
end

-- Write the hosts back, and with them their places in the heap.
local function save_hosts()
  local rows, ready, load, slow, failing, removed = {}, {}, {}, {}, {}, {}
  for _, name in ipairs(names) do
    local host = hosts[name]
    if host.waiting > host.suspects and room_of(host) > 0 then
      note_score(ready, host, 'ready', host.next)
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
    rows[#rows + 1] = name
    rows[#rows + 1] = pack_host(host)
  end
  for first = 1, #rows, AT_ONCE do
    call('HSET', prefix .. 'hosts', unpack(rows, first, math.min(first + AT_ONCE - 1, #rows)))
  end
  for first = 1, #removed, AT_ONCE do
    call('ZREM', prefix .. 'ready', unpack(removed, first, math.min(first + AT_ONCE - 1, #removed)))
  end
  save_scores('ready', ready)
  save_scores('load', load)
  save_scores('slow', slow)
  save_scores('failing', failing)
end
