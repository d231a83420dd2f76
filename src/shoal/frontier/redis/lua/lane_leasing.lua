-- Decides which tasks of lanes are handed out, and when asking again makes sense. Needs
-- leasing.lua, lanes.lua, taking_back.lua, lending.lua, lane_granting.lua, lane_starving.lua.

do

local served_pools, has_lanes_of_one = {}, {}
local has_pools = serving.has_pools

local plain_undo, plain_serve_ready_hosts = undo, serve_ready_hosts
local plain_next_moment = next_moment

function undo(tokens)
  for _, packed in ipairs(ask_many('HMGET', prefix .. 'held', tokens)) do
    local task = packed and cmsgpack.unpack(packed)
    if task and task[8] then
      local lane = lanes.let_go(task)
      free_turn(lane.host, task[5], task[6])
    end
  end
  plain_undo(tokens)
end

-- The number of the first task for which there is an exit of the pool, that exit, and the pool. Or
-- nothing.
local function choose_of(pool_name, host_name, tasks)
  local pool = has_pools[pool_name] and exits.pool(pool_name)
  if pool and exit_policy.may_spend(exits.cost(pool_name), pool, exits.now) then
    local number, exit = lending.choose(pool, host_name, tasks)
    return number, exit, pool
  end
end

-- Hand out one of these tasks with an exit, if there is an exit for any of them. Returns the number
-- of the task.
function serving.lend_one(lane, state, tasks)
  local name, probed = serving.pools_for(lane, state)
  local number, exit, pool
  if probed then
    number, exit, pool = choose_of(probed, lane.host.name, tasks)
    if number then
      state.probe_at, lane.is_changed = exits.now + POLICY.probe_every, true
    end
  end
  if not number and name ~= probed then
    number, exit, pool = choose_of(name, lane.host.name, tasks)
  end
  if number then
    serving.grant(lane, table.remove(tasks, number), exit, pool)
  end
  return number
end

-- Until when the lanes of a pool need not be looked at. False if they should be looked at now.
function serving.held_up(pool_name)
  return lending.held_up(pool_name, has_pools)
end

local function is_held_up(pool_name)
  local known = serving.known_held_up
  if known[pool_name] == nil then
    known[pool_name] = serving.held_up(pool_name)
  end
  return known[pool_name]
end

-- Whether the whole group or pool of a lane is held up. Not for the lane of one account, which may
-- be banned while others are merely busy.
local function is_lane_held_up(lane)
  return lane.pool == lane.group and is_held_up(lane.group)
end

-- Put off a lane for which no exit could be used. If that is only because other tasks have them,
-- the lane keeps its place before lanes that were served. Returns whether its tasks may leave
-- directly.
local function put_off(lane, state, tasks)
  serving.known_held_up = {}
  if is_lane_held_up(lane) then
    serving.note_look(lane, state, false)
    return false
  end
  return serving.put_off(lane, state, tasks)
end

-- When looking at the lanes of a host makes sense, as far as the host is concerned.
local function turn_of(host)
  return math.max(host.next, now + (room_left(host) > 0 and 0 or POLICY.busy_wait))
end

-- Hand out tasks of a lane, at most `wanted`, or find out when to look at it again.
local function serve_lane(lane, wanted)
  local host, at = lane.host, turn_of(lane.host)
  if at > now then
    lane.next = at
    return
  end
  local most = math.min(interval_of(host) > 0 and 1 or wanted, room_left(host))
  local seen = serving.are_any_blocked() and POLICY.tasks_seen or 1
  local tasks = serving.first_tasks(lane, math.max(most, seen))
  if #tasks == 0 then
    lane.next = now + POLICY.busy_wait
    return
  end
  serving.read_blocks(tasks)
  local state, given = lanes.state(lane), 0
  while given < most and #tasks > 0 and serving.lend_one(lane, state, tasks) do
    given = given + 1
  end
  if given > 0 then
    serving.note_look(lane, state, false)
    lane.was_served = true
  elseif not lane.was_served and put_off(lane, state, tasks) then -- Else the next ask decides.
    given = math.min(most, #tasks)
    for i = 1, given do
      serving.grant(lane, tasks[i])
    end
  end
  if given > 0 then
    lane.next = turn_of(host)
  end
end

-- The pools whose exits the lanes of a pool may use.
function serving.pools_of(pool_name)
  return exit_policy.tiers(pool_name, exits.pool)
end

-- If a pool has changed since its lanes were put off, make all of them ready to be looked at.
local function note_changes(pool_name)
  local versions = {}
  for i, name in ipairs(serving.pools_of(pool_name)) do
    local pool = exits.pool(name)
    versions[i] = name .. ' ' .. whole(pool and pool.version or 0)
  end
  local key, version = prefix .. 'versions', table.concat(versions, ' ')
  if call('HGET', key, pool_name) ~= version then
    call('HSET', key, pool_name, version)
    local heap, scores = prefix .. 'ready:' .. pool_name, {}
    for _, name in ipairs(call('ZRANGEBYSCORE', heap, '(' .. whole(now), '+inf')) do
      scores[#scores + 1] = 0
      scores[#scores + 1] = name
    end
    call_many('ZADD', heap, scores)
  end
end

-- The moment by which ready lanes are sorted. While its account is in use, the lane of one account
-- is put off, whereas other lanes keep their places. The correction puts it before lanes that were
-- served meanwhile.
local function place_of(name, score)
  return name:find('^@[^ ]*#') and score - POLICY.busy_wait - 1 or score
end

-- The lanes of these pools that are ready, those that have been ready for longest first.
local function ready_lanes(pool_names, seen, most)
  local found, order, places = {}, {}, {}
  for _, name in ipairs(pool_names) do
    local heap = prefix .. 'ready:' .. name
    local rows =
      call('ZRANGEBYSCORE', heap, '-inf', whole(now), 'WITHSCORES', 'LIMIT', seen, most)
    for i = 1, #rows, 2 do
      found[#found + 1] = rows[i]
      order[rows[i]] = tonumber(rows[i + 1])
      places[rows[i]] = place_of(rows[i], order[rows[i]])
    end
  end
  table.sort(found, function(a, b)
    if places[a] ~= places[b] then
      return places[a] < places[b]
    end
    return a < b
  end)
  lanes.read(found)
  lanes.read_states(found)
  for _, name in ipairs(found) do
    local lane = lanes.known[name]
    if lane.ready ~= order[name] and lane.next == lane.ready then
      lane.next = order[name] -- It was made ready after its record was written.
    end
    lane.ready = order[name]
  end
  return found
end

-- Whether the lanes of a pool may use exits that the worker knows.
function serving.is_served(pool_name)
  for _, name in ipairs(serving.pools_of(pool_name)) do
    if has_pools[name] then
      return true
    end
  end
  return false
end

-- Find the pools that have lanes in this crawl and may use exits that the worker knows.
local function find_pools()
  for _, name in ipairs(call('SMEMBERS', prefix .. 'pools')) do
    local group = lanes.group_of(name)
    if group ~= name then
      has_lanes_of_one[group] = true
    elseif serving.is_served(name) then
      note_changes(name)
      served_pools[#served_pools + 1] = name
    end
  end
end

-- Whether the worker knows the exits that a lane uses now.
function serving.is_known(lane)
  return has_pools[(serving.pools_for(lane, lanes.state(lane)))]
end

-- Whether a lane may be served for this worker now. A lane that was emptied in this step may still
-- be among the ready ones.
local function may_serve(lane, yields)
  if lane.next > now or lane.waiting <= lane.suspects or is_lane_held_up(lane) then
    return false
  end
  if not serving.is_known(lane) then
    serving.is_refused = true -- It is for workers that know its exits.
    return false
  end
  return not (yields and lane.host.waiting > 0 and math.random() < 0.5)
end

-- Serve lanes in turn, at most `most` tasks. With `yields`, a host's other tasks get its turn as
-- often as the tasks of its lanes.
local function serve_lanes(most, yields)
  local wanted, before = {}, serving.count
  most = math.min(most, serving.slots - serving.count)
  for _, name in ipairs(most > 0 and served_pools or {}) do
    if has_lanes_of_one[name] or not is_held_up(name) then
      wanted[#wanted + 1] = name
    end
  end
  local seen, batch = 0, math.min(math.max(2 * most, 16), POLICY.lanes_seen)
  while #wanted > 0 and serving.count - before < most and seen < POLICY.lanes_seen do
    local ready = ready_lanes(wanted, seen, batch)
    for i, name in ipairs(ready) do
      local lane, left = lanes.known[name], most - (serving.count - before)
      if left > 0 and may_serve(lane, yields) then
        serve_lane(lane, math.ceil(left / (#ready - i + 1)))
      end
    end
    if #ready < batch then
      break
    end
    seen = seen + batch
  end
end

-- Serve lanes with up to half of the tasks, then hosts with what they want, then lanes with the
-- rest: so neither hosts nor lanes keep the others from their turn.
function serve_ready_hosts(most)
  if serving.slots == 0 then
    return plain_serve_ready_hosts(most)
  end
  exits.open()
  exits.sweep()
  local is_withheld = false
  find_pools()
  local half = math.floor((most + (math.random() < 0.5 and 1 or 0)) / 2)
  serve_lanes(half, true)
  if count < most then
    is_withheld = plain_serve_ready_hosts(most)
  end
  if count < most then
    serve_lanes(most - count, false)
  end
  advance_chains()
  return is_withheld
end

-- Hand out a suspect of a lane. Returns whether that was possible.
local function lend_suspect(lane, priority, entry, packed)
  local task = {priority = priority, entry = entry, key = prefix .. 'suspects', stored = packed}
  serving.read_blocks({task})
  local state = lanes.state(lane)
  if serving.lend_one(lane, state, {task}) then
    serving.note_look(lane, state, false)
  elseif put_off(lane, state, {task}) then
    serving.grant(lane, task)
  else
    return false
  end
  lane.suspects = lane.suspects - 1
  return true
end

local function may_lend(lane)
  exits.open()
  return serving.is_known(lane)
end

function serve_suspect()
  local suspects = prefix .. 'suspects'
  for _, packed in ipairs(call('LRANGE', suspects, 0, POLICY.suspects_seen - 1)) do
    local name, priority, entry = values_of(packed)
    local place = host_named(name)
    local host = place.host or place
    local may_be_hit = host.next <= now and room_left(host) > 0
    if may_be_hit and place.host and serving.slots > 0 and may_lend(place) then
      if lend_suspect(place, priority, entry, packed) then
        return true
      end
    elseif may_be_hit and not place.host then
      host.suspects = host.suspects - 1
      grant(host, {entry}, {priority})
      call('LREM', suspects, 1, packed)
      return true
    end
  end
  advance_chains()
  return false
end

-- When a suspect of a host or lane may be handed out, as far as its host is concerned.
local function suspect_of_any_at(name)
  local place = host_named(name)
  if not place.host then
    return suspect_at(name)
  end
  local is_known = serving.slots > 0 and may_lend(place)
  return is_known and math.max(place.host.next, now + POLICY.busy_wait) or math.huge
end

function next_moment()
  local first = plain_next_moment(suspect_of_any_at)
  if serving.slots == 0 or limit == 0 or pages_left() <= 0 then
    return first
  end
  first = first >= 0 and first or math.huge
  for _, name in ipairs(served_pools) do
    local found = call('ZRANGE', prefix .. 'ready:' .. name, 0, 0, 'WITHSCORES')
    local at = tonumber(found[2]) or math.huge
    if at <= now then
      local again_at = serving.held_up(name)
      at = again_at and serving.own_moment(again_at) or at
    end
    first = math.min(first, math.max(at - now, 0))
  end
  if serving.is_refused and count == 0 then
    return math.max(first < math.huge and first or 0, POLICY.busy_wait)
  end
  return first < math.huge and first or -1
end

end
