-- How tasks of lanes are handed out, with exits. Needs leasing.lua, lanes.lua, lending.lua.
--
-- ARGV[6] is here packed {what the worker has of hosts, the pools whose exits it knows, how many tasks by
-- exits it can take, a random number}.

do

local has_pools, slots, lane_count, is_refused = {}, 0, 0, false
local held_up, served_pools, are_blocked = {}, {}, nil

if #has > 0 then
  local asked = has
  has, slots = asked[1], asked[3]
  math.randomseed(math.floor(asked[4] * 2 ^ 31))
  for _, name in ipairs(asked[2]) do
    has_pools[name] = true
  end
end

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

-- The first tasks of a lane.
local function first_tasks(lane, wanted)
  local tasks, number = {}, 1
  local best = best_priority(lane)
  while best and #tasks < wanted do
    local key = prefix .. 'q:' .. best .. ':' .. lane.name
    local entries = call('LRANGE', key, 0, wanted - #tasks - 1)
    for i, entry in ipairs(entries) do
      tasks[#tasks + 1] = {key = key, priority = best, entry = entry, is_first = i == 1}
    end
    if #entries == 0 then
      table.remove(lane.priorities, number) -- It was emptied.
    else
      number = number + 1
    end
    best = number == 1 and best_priority(lane) or lane.priorities[number]
  end
  return tasks
end

-- Most crawls have none that were blocked.
local function are_any_blocked()
  if are_blocked == nil then
    are_blocked = call('EXISTS', prefix .. 'blocks') == 1
  end
  return are_blocked
end

local function read_blocks(tasks)
  local fingerprints = {}
  for _, task in ipairs(tasks) do
    task.blocks = {0}
  end
  if not are_any_blocked() then
    return
  end
  for i, task in ipairs(tasks) do
    fingerprints[i] = fingerprint_of(task.entry)
  end
  for i, packed in ipairs(ask_many('HMGET', prefix .. 'blocks', fingerprints)) do
    tasks[i].blocks = packed and cmsgpack.unpack(packed) or tasks[i].blocks
  end
end

local function remove_task(task)
  if task.is_first then
    call('LPOP', task.key)
  else
    call('LREM', task.key, 1, task.stored or task.entry)
  end
end

-- Give the worker a task of a lane, which leaves by this exit; directly, if by none.
local function grant_by(lane, task, exit, pool)
  local host, blocks = lane.host, task.blocks
  remove_task(task)
  local interval = interval_of(host)
  local is_paced = interval > 0 or exit and (pool.interval > 0 or pool.pair_interval > 0)
  local robots_at = whole(knows_robots(host) and host.robots_at or 0)
  local lent = {'', 0, lane.pool, exits.now, blocks[1]}
  if exit then
    lent = exits.lend(exit, host.name, pool, blocks[1])
  end
  lane.waiting, lane.leased = lane.waiting - 1, lane.leased + 1
  host.leased, host.next = host.leased + 1, now + interval
  counts.waiting, counts.leased = counts.waiting - 1, counts.leased + 1
  note_holding(worker, 1)
  count, lane_count = count + 1, lane_count + 1
  local own, crowded = token .. count, room_left(host) == 0 and 1 or 0
  local told = {lent[1], lent[2], lent[3], blocks[1], #blocks - 1}
  local value = {lane.name, task.priority, task.entry, worker, now, host.next, false, lent}
  held[2 * count - 1], held[2 * count] = own, cmsgpack.pack(value)
  due[2 * count - 1], due[2 * count] = whole(now + rules.lease), own
  granted[#granted + 1] =
    {lane.name, robots_at, is_paced and 1 or 0, crowded, told, task.priority, task.entry}
end

-- The pool of the lane's tier, or, where that may not spend, the first below that may; and the one below, if
-- that is to be tried.
local function pools_for(lane, state)
  local tiers = exit_policy.tiers(lane.pool, exits.pool)
  local tier = math.min(state.tier + 1, #tiers)
  local probed = tier > 1 and exits.now >= state.probe_at and tiers[tier - 1]
  for at = tier, 1, -1 do
    local pool = exits.pool(tiers[at])
    if pool and exit_policy.may_spend(exits.cost(tiers[at]), pool, exits.now) then
      return tiers[at], probed
    end
  end
  return tiers[tier], probed
end

-- The first of some tasks for which there is an exit of a pool, that exit, and the pool. Or nothing.
local function choose_of(pool_name, host_name, tasks)
  local pool = has_pools[pool_name] and exits.pool(pool_name)
  if pool and exit_policy.may_spend(exits.cost(pool_name), pool, exits.now) then
    local number, exit = lending.choose(pool, host_name, tasks)
    return number, exit, pool
  end
end

-- Hand out one of these tasks with an exit, if there is one for any of them.
local function lend_one(lane, state, tasks)
  local name, probed = pools_for(lane, state)
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
    grant_by(lane, table.remove(tasks, number), exit, pool)
  end
  return number
end

-- A lane was looked at. If nobody did for long, its crawl stood still, and it begins anew.
local function note_look(lane, state, is_starved)
  if not is_starved then
    lane.is_changed = lane.is_changed or state.starved_at > 0
    state.starved_at = 0
    return
  end
  if state.starved_at == 0 or exits.now - state.looked_at > POLICY.unseen then
    state.starved_at = exits.now
  end
  state.looked_at, lane.is_changed = exits.now, true
end

-- By the exits' clock, as this crawl's own has it.
local function own_moment(at)
  return at - exits.now + now
end

local function starved_reason(lane, told, may_spend)
  local pool = exits.pool(lane.pool)
  local reason = pool and pool.starved or STARVED.head:format(lane.pool)
  if not may_spend then
    return reason .. STARVED.spent
  elseif told.listed == 0 then
    return reason .. STARVED.no_exits
  end
  reason = reason .. (told.listed == 1 and STARVED.one_exit or STARVED.exits):format(told.listed)
  local others = told.listed - told.out - told.cooling
  for _, part in ipairs({{told.out, 'out'}, {told.cooling, 'cooling'}, {others, 'tried'}}) do
    if part[1] > 0 then
      reason = reason .. ', ' .. STARVED[part[2]]:format(part[1])
    end
  end
  return reason
end

local function let_one_die(lane, priority, entry, reason)
  keep_as_dead(lane, priority, entry, reason, '')
  leave_chain(entry)
  call('HDEL', prefix .. 'blocks', fingerprint_of(entry))
  lane.waiting = lane.waiting - 1
  counts.waiting = counts.waiting - 1
end

-- No exit could be used for these for too long. A suspect dies alone.
local function let_die(lane, tasks, reason)
  if tasks[1].stored then
    remove_task(tasks[1])
    lane.suspects = lane.suspects - 1
    let_one_die(lane, tasks[1].priority, tasks[1].entry, reason)
    return
  end
  local entries, priorities = take(lane, POLICY.starved_batch)
  for i, entry in ipairs(entries) do
    let_one_die(lane, priorities[i], entry, reason)
  end
end

-- No exit of the pool could be used for the lane, whose host may be hit. Returns whether its tasks may leave without
-- one. Else it is put off; if that lasts too long, its tasks die.
local function put_off(lane, state, tasks)
  local name = pools_for(lane, state)
  held_up = {}
  local pool, own = exits.pool(name), exits.pool(lane.pool)
  local told = {listed = 0, out = 0, cooling = 0, busy = 0, full = 0, at = math.huge}
  local may_spend = true
  if pool then
    may_spend = exit_policy.may_spend(exits.cost(name), pool, exits.now)
    told = lending.outlook(pool, lane.host.name)
  end
  local is_busy = told.busy > 0
  if not may_spend then
    is_busy = exits.cost(name).leased > 0
    told.full = 1
    told.at = (math.floor(exits.now / pool.budget_period) + 1) * pool.budget_period
  end
  if is_busy then
    note_look(lane, state, false)
    lane.next = own_moment(lending.again_at(told))
    return false
  end
  if own and own.allow_direct then
    note_look(lane, state, false)
    lane.next = now
    return true
  end
  note_look(lane, state, true)
  local dies_at = state.starved_at + (own and own.timeout or POLICY.pool_timeout)
  local at = told.at
  if exits.now >= dies_at then
    let_die(lane, tasks, starved_reason(lane, told, may_spend))
    at = exits.now
  end
  -- Who does not look for long does not know that it was starved all the time.
  lane.next = own_moment(math.min(at, math.max(dies_at, exits.now), exits.now + POLICY.unseen / 2))
  return false
end

-- Hand out tasks of a lane, at most so many, or find out when it is to be looked at again.
local function serve_lane(lane, wanted)
  local host, room = lane.host, room_left(lane.host)
  if host.next > now or room == 0 then
    lane.next = math.max(host.next, now + (room > 0 and 0 or POLICY.busy_wait))
    return
  end
  local most = math.min(interval_of(host) > 0 and 1 or wanted, room)
  local tasks = first_tasks(lane, math.max(most, are_any_blocked() and POLICY.tasks_seen or 1))
  if #tasks == 0 then
    lane.next = now + POLICY.busy_wait
    return
  end
  read_blocks(tasks)
  local state, given = lanes.state(lane), 0
  while given < most and #tasks > 0 and lend_one(lane, state, tasks) do
    given = given + 1
  end
  if given > 0 then
    note_look(lane, state, false)
    lane.next = math.max(host.next, now)
  elseif put_off(lane, state, tasks) then
    for i = 1, math.min(most, #tasks) do
      grant_by(lane, tasks[i])
    end
  end
end

-- A pool has changed since its lanes were put off: all are worth a look.
local function note_changes(pool_name)
  local version = 0
  for _, name in ipairs(exit_policy.tiers(pool_name, exits.pool)) do
    local pool = exits.pool(name)
    version = version + (pool and pool.version or 0)
  end
  local key = prefix .. 'versions'
  if call('HGET', key, pool_name) ~= whole(version) then
    call('HSET', key, pool_name, whole(version))
    local heap, scores = prefix .. 'ready:' .. pool_name, {}
    for _, name in ipairs(call('ZRANGEBYSCORE', heap, '(' .. whole(now), '+inf')) do
      scores[#scores + 1] = 0
      scores[#scores + 1] = name
    end
    call_many('ZADD', heap, scores)
  end
end

-- Lanes that are to be looked at, of these pools, the longest ready first.
local function ready_lanes(pool_names, seen, most)
  local found, order = {}, {}
  for _, name in ipairs(pool_names) do
    local heap = prefix .. 'ready:' .. name
    local rows =
      call('ZRANGEBYSCORE', heap, '-inf', whole(now), 'WITHSCORES', 'LIMIT', seen, most)
    for i = 1, #rows, 2 do
      found[#found + 1] = rows[i]
      order[rows[i]] = tonumber(rows[i + 1])
    end
  end
  table.sort(found, function(a, b)
    if order[a] ~= order[b] then
      return order[a] < order[b]
    end
    return a < b
  end)
  lanes.read(found)
  lanes.read_states(found)
  for _, name in ipairs(found) do
    local lane = lanes.known[name]
    if lane.ready ~= order[name] and lane.next == lane.ready then
      lane.next = order[name] -- It was woken since it was written.
    end
    lane.ready = order[name]
  end
  return found
end

local function is_served(pool_name)
  for _, name in ipairs(exit_policy.tiers(pool_name, exits.pool)) do
    if has_pools[name] then
      return true
    end
  end
  return false
end

-- The pools that have lanes here, and that may use exits which the worker knows.
local function find_pools()
  for _, name in ipairs(call('SMEMBERS', prefix .. 'pools')) do
    if is_served(name) then
      note_changes(name)
      served_pools[#served_pools + 1] = name
    end
  end
end

local function is_held_up(pool_name)
  if held_up[pool_name] == nil then
    held_up[pool_name] = lending.held_up(pool_name, has_pools)
  end
  return held_up[pool_name]
end

-- Whether a lane is one for this worker, now.
local function may_serve(lane, yields)
  if lane.next > now or is_held_up(lane.pool) then
    return false
  end
  local name = pools_for(lane, lanes.state(lane))
  if not has_pools[name] then
    is_refused = true -- It is for others, who know its exits.
    return false
  end
  return not (yields and lane.host.waiting > 0 and math.random() < 0.5)
end

-- Serve lanes in turn. Where it yields, a host's other tasks have its turn as often as those of its lanes.
local function serve_lanes(most, yields)
  local wanted, before = {}, lane_count
  most = math.min(most, slots - lane_count)
  for _, name in ipairs(most > 0 and served_pools or {}) do
    if not is_held_up(name) then
      wanted[#wanted + 1] = name
    end
  end
  local seen, batch = 0, math.min(math.max(2 * most, 16), POLICY.lanes_seen)
  while #wanted > 0 and lane_count - before < most and seen < POLICY.lanes_seen do
    local ready = ready_lanes(wanted, seen, batch)
    for i, name in ipairs(ready) do
      local lane, left = lanes.known[name], most - (lane_count - before)
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

-- Neither hosts nor lanes keep the others from their turn: lanes get up to half, then hosts what they want, and
-- lanes the rest.
function serve_ready_hosts(most)
  if slots == 0 then
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

-- A task of a lane that workers died with.
local function lend_suspect(lane, priority, entry, packed)
  local task = {priority = priority, entry = entry, key = prefix .. 'suspects', stored = packed}
  read_blocks({task})
  local state = lanes.state(lane)
  if lend_one(lane, state, {task}) then
    note_look(lane, state, false)
  elseif put_off(lane, state, {task}) then
    grant_by(lane, task)
  else
    return false
  end
  lane.suspects = lane.suspects - 1
  return true
end

-- Whether the worker knows the exits that a lane uses now.
local function may_lend(lane)
  exits.open()
  return has_pools[(pools_for(lane, lanes.state(lane)))]
end

function serve_suspect()
  local suspects = prefix .. 'suspects'
  for _, packed in ipairs(call('LRANGE', suspects, 0, POLICY.suspects_seen - 1)) do
    local name, priority, entry = values_of(packed)
    local place = host_named(name)
    local host = place.host or place
    local may_be_hit = host.next <= now and room_left(host) > 0
    if may_be_hit and place.host and slots > 0 and may_lend(place) then
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

-- When a suspect may be handed out, as far as its host goes.
local function suspect_of_any_at(name)
  local place = host_named(name)
  if not place.host then
    return suspect_at(name)
  end
  local is_known = slots > 0 and may_lend(place)
  return is_known and math.max(place.host.next, now + POLICY.busy_wait) or math.huge
end

function next_moment()
  local first = plain_next_moment(suspect_of_any_at)
  if slots == 0 or limit == 0 or pages_left() <= 0 then
    return first
  end
  first = first >= 0 and first or math.huge
  for _, name in ipairs(served_pools) do
    local found = call('ZRANGE', prefix .. 'ready:' .. name, 0, 0, 'WITHSCORES')
    local at = tonumber(found[2]) or math.huge
    if at <= now then
      local again_at = lending.held_up(name, has_pools)
      at = again_at and own_moment(again_at) or at
    end
    first = math.min(first, math.max(at - now, 0))
  end
  if is_refused and count == 0 then
    return math.max(first < math.huge and first or 0, POLICY.busy_wait)
  end
  return first < math.huge and first or -1
end

end
