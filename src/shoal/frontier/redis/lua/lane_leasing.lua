-- How tasks of lanes are handed out, with exits. Needs leasing.lua, lanes.lua, lending.lua.
--
-- ARGV[6] is here packed {what the worker has of hosts, the pools whose exits it knows, how many tasks by
-- exits it can take, a random number}.

local has_pools, slots, lane_count, pool_waits = {}, 0, 0, {}

if #has > 0 then
  local asked = has
  has, slots, lending.dice = asked[1], asked[3], asked[4]
  for _, name in ipairs(asked[2]) do
    has_pools[name] = true
  end
end

local plain_undo, plain_serve_ready_hosts = undo, serve_ready_hosts
local plain_serve_suspect, plain_next_moment = serve_suspect, next_moment

local function undo(tokens)
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
local function first_tasks(lane)
  local tasks, number = {}, 1
  local best = best_priority(lane)
  while best and #tasks < POLICY.tasks_seen do
    local key = prefix .. 'q:' .. best .. ':' .. lane.name
    local entries = call('LRANGE', key, 0, POLICY.tasks_seen - #tasks - 1)
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

local function read_blocks(tasks)
  local fingerprints = {}
  for i, task in ipairs(tasks) do
    fingerprints[i] = fingerprint_of(task.entry)
  end
  for i, packed in ipairs(ask_many('HMGET', prefix .. 'blocks', fingerprints)) do
    tasks[i].blocks = packed and cmsgpack.unpack(packed) or {0}
  end
end

local function remove_task(task)
  if task.is_first then
    call('LPOP', task.key)
  else
    call('LREM', task.key, 1, task.entry)
  end
end

-- Give the worker a task of a lane, which leaves by this exit; directly, if by none.
local function grant_by(lane, task, exit, pool)
  local host, blocks = lane.host, task.blocks
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

-- The pools whose exits may be used for a lane now, the one to try first first.
local function pools_for(lane, state)
  local tiers = exit_policy.tiers(lane.pool, exits.pool)
  local at = math.min(state.tier + 1, #tiers)
  local probed = at > 1 and exits.now >= state.probe_at and exits.pool(tiers[at - 1])
  while at > 1 and not exit_policy.may_spend(exits.cost(tiers[at]), exits.pool(tiers[at]), exits.now) do
    at = at - 1
  end
  return exits.pool(tiers[at]), probed
end

local function try_pool(lane, pool, tasks)
  local cost = exits.cost(pool.name)
  if not has_pools[pool.name] or not exit_policy.may_spend(cost, pool, exits.now) then
    return nil
  end
  return lending.choose(pool, lane.host.name, tasks)
end

-- By the exits' clock, as this crawl's own has it.
local function own_moment(at)
  return at - exits.now + now
end

local function starved_reason(lane, why)
  local pool = exits.pool(lane.pool)
  local reason = TEXTS.starved:format(lane.pool, pool and pool.timeout_text or TEXTS.timeout)
  if why.is_spent then
    return reason .. TEXTS.spent
  elseif why.listed == 0 then
    return reason .. TEXTS.no_exits
  end
  reason = reason .. TEXTS.exits:format(why.listed)
  if why.out > 0 then
    reason = reason .. TEXTS.out:format(why.out)
  end
  if why.cooling > 0 then
    reason = reason .. TEXTS.cooling:format(why.cooling)
  end
  return reason
end

-- Nobody could serve these for too long.
local function let_die(lane, why)
  local entries, priorities = take(lane, POLICY.starved_batch)
  local reason, fingerprints = starved_reason(lane, why), {}
  for i, entry in ipairs(entries) do
    keep_as_dead(lane, priorities[i], entry, reason, '')
    leave_chain(entry)
    fingerprints[i] = fingerprint_of(entry)
  end
  call_many('HDEL', prefix .. 'blocks', fingerprints)
  lane.waiting = lane.waiting - #entries
  counts.waiting = counts.waiting - #entries
end

-- No exit can be used, and none is merely busy: for how long, and when is it too long?
local function note_starving(lane, state, why)
  local pool = exits.pool(lane.pool)
  local timeout = pool and pool.timeout or POLICY.pool_timeout
  if state.starved_at == 0 or exits.now - state.looked_at > POLICY.unseen then
    state.starved_at = exits.now
  end
  state.looked_at, lane.is_changed = exits.now, true
  if exits.now - state.starved_at >= timeout then
    let_die(lane, why)
  end
  local again = math.min(exits.now + POLICY.unseen / 2, math.max(state.starved_at + timeout, exits.now))
  return math.min(why.at, again)
end

local function why_no_exit(lane, pool)
  local none = {listed = 0, out = 0, cooling = 0, busy = 0, at = exits.now + POLICY.busy_wait}
  if not pool or pool.listed == 0 then
    return none
  end
  if not exit_policy.may_spend(exits.cost(pool.name), pool, exits.now) then
    none.is_spent, none.listed = true, pool.listed
    return none
  end
  return lending.why_none(pool, lane.host.name)
end

-- Give the worker one task of a lane. If there is none for it, returns the moment of the next look; false if that is
-- for others to say.
local function serve_one(lane, tasks)
  local state, host = lanes.state(lane), lane.host
  local pool, probed = pools_for(lane, state)
  local number, exit
  if probed and pool ~= probed then
    number, exit = try_pool(lane, probed, tasks)
    if number then
      state.probe_at, lane.is_changed = exits.now + POLICY.probe_every, true
      pool = probed
    end
  end
  if not number and pool then
    if not has_pools[pool.name] then
      return false
    end
    number, exit = try_pool(lane, pool, tasks)
  end
  if number then
    if state.starved_at > 0 then
      state.starved_at, lane.is_changed = 0, true
    end
    remove_task(tasks[number])
    grant_by(lane, tasks[number], exit, pool)
    return nil
  end
  local why, own = why_no_exit(lane, pool), exits.pool(lane.pool)
  if why.busy > 0 then
    if state.starved_at > 0 then
      state.starved_at, lane.is_changed = 0, true
    end
    return own_moment(why.at < math.huge and why.at or exits.now + POLICY.busy_wait)
  end
  if own and own.allow_direct then
    remove_task(tasks[1])
    grant_by(lane, tasks[1])
    return nil
  end
  return own_moment(note_starving(lane, state, why))
end

-- Give the worker tasks of a lane, at most so many.
local function serve_lane(lane, portion)
  local host = lane.host
  for _ = 1, portion do
    if lane.waiting <= lane.suspects then
      return
    end
    if host.next > now or room_left(host) == 0 then
      lane.at = host.next > now and host.next or now + POLICY.busy_wait
      return
    end
    local tasks = first_tasks(lane)
    if #tasks == 0 then
      return
    end
    read_blocks(tasks)
    local at = serve_one(lane, tasks)
    if at ~= nil then
      lane.at = at or nil
      return
    end
  end
  lane.at = host.next
end

-- Whether a pool and those above it have no exit that may be used now, though some are only busy: then no lane
-- needs to be looked at. Notes when it does.
local function is_all_busy(pool_name)
  local first = math.huge
  for _, name in ipairs(exit_policy.tiers(pool_name, exits.pool)) do
    local pool = exits.pool(name)
    if not pool or pool.listed == 0 then
      return false
    end
    exits.wake(name)
    lending.woken[name] = true
    local later_key = EXITS_BASE .. 'later:' .. name
    local later = call('ZCARD', later_key)
    if call('ZCARD', EXITS_BASE .. 'free:' .. name) > 0 or later >= pool.listed then
      return false
    end
    local next_one = call('ZRANGE', later_key, 0, 0, 'WITHSCORES')
    first = math.min(first, tonumber(next_one[2]) or math.huge)
  end
  pool_waits[pool_name] = own_moment(math.min(first, exits.now + POLICY.busy_wait))
  return true
end

-- Lanes that are worth a look, of all pools that the worker knows, in turn.
local function ready_lanes(pool_names, seen, count_each)
  local found = {}
  for _, name in ipairs(pool_names) do
    local heap = prefix .. 'ready:' .. name
    local rows = call('ZRANGEBYSCORE', heap, '-inf', whole(now), 'WITHSCORES', 'LIMIT', seen, count_each)
    for i = 1, #rows, 2 do
      found[#found + 1] = {rows[i], tonumber(rows[i + 1])}
    end
  end
  table.sort(found, function(a, b)
    if a[2] ~= b[2] then
      return a[2] < b[2]
    end
    return a[1] < b[1]
  end)
  for i, row in ipairs(found) do
    found[i] = row[1]
  end
  return found
end

local function serve_lanes(most)
  local pool_names = {}
  for _, name in ipairs(call('SMEMBERS', prefix .. 'pools')) do
    if has_pools[name] and not is_all_busy(name) then
      pool_names[#pool_names + 1] = name
    end
  end
  local seen, batch = 0, math.min(math.max(2 * most, 16), POLICY.lanes_seen)
  while #pool_names > 0 and lane_count < most and seen < POLICY.lanes_seen do
    local ready = ready_lanes(pool_names, seen, batch)
    if #ready == 0 then
      break
    end
    lanes.read(ready)
    for i, name in ipairs(ready) do
      local lane = lanes.known[name]
      local portion = math.ceil((most - lane_count) / (#ready - i + 1))
      if portion > 0 then
        serve_lane(lane, interval_of(lane.host) > 0 and 1 or portion)
      end
    end
    seen = seen + batch
  end
  advance_chains()
end

local function serve_ready_hosts(most)
  local lanes_most = math.min(slots, most)
  if lanes_most > 0 then
    exits.open()
    serve_lanes(lanes_most)
  end
  return count < most and plain_serve_ready_hosts(most)
end

-- A task of a lane that workers died with.
local function serve_suspect()
  for _, packed in ipairs(call('LRANGE', prefix .. 'suspects', 0, POLICY.suspects_seen - 1)) do
    local name, priority, entry = values_of(packed)
    local lane = name:find(' ', 1, true) and slots > 0 and lanes.named(name)
    if lane and lane.host.next <= now and room_left(lane.host) > 0 then
      exits.open()
      local task = {key = '', priority = priority, entry = entry}
      read_blocks({task})
      serve_one(lane, {task})
      if count > 0 then
        lane.suspects = lane.suspects - 1
        call('LREM', prefix .. 'suspects', 1, packed)
        return true
      end
    end
  end
  return plain_serve_suspect()
end

local function next_moment()
  local first = plain_next_moment()
  if slots == 0 or limit == 0 or pages_left() <= 0 then
    return first
  end
  first = first >= 0 and first or math.huge
  for name in pairs(has_pools) do
    local found = call('ZRANGE', prefix .. 'ready:' .. name, 0, 0, 'WITHSCORES')
    local at = tonumber(found[2]) or math.huge
    if at <= now and lane_count < slots then
      at = pool_waits[name] or now + POLICY.busy_wait -- It could not be served just now.
    end
    first = math.min(first, math.max(at - now, 0))
  end
  return first < math.huge and first or -1
end
