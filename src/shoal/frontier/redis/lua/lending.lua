-- Finds an exit that a task of a lane may leave by. Needs exit_policy.lua, exits.lua, lanes.lua.

local lending = {woken = {}}

do

-- How many exits are looked at first: mostly one of them can be used.
local FIRST_LOOK = 8

function lending.is_usable(exit, pool, host_name)
  return exit
    and exit_policy.exit_ready_at(exit, pool) <= exits.now
    and exit_policy.pair_ready_at(exits.pair(exit, host_name)) <= exits.now
end

function lending.wake(pool)
  if not lending.woken[pool.name] then
    lending.woken[pool.name] = true
    exits.wake(pool.name)
  end
end

-- The exits of a pool that stick to a host, those that have done so for longest first.
local function sticking(pool, host_name)
  if pool.sticky == 0 then
    return {}
  end
  local stick = EXITS_BASE .. 'stick:' .. pool.name .. ':' .. host_name
  local since = '(' .. whole(exits.now - pool.sticky)
  local ids = call('ZRANGEBYSCORE', stick, since, '+inf', 'LIMIT', 0, POLICY.exits_seen)
  local found = {}
  exits.read(ids)
  exits.read_pairs(host_name, ids)
  for _, exit_id in ipairs(ids) do
    local exit = exits.known[exit_id]
    if exit and exit_policy.is_sticking(exits.pair(exit, host_name), pool, exits.now) then
      found[#found + 1] = exit_id
    end
  end
  return found
end

-- Some of the exits that may be used now, from a place in their order on. If there are more than
-- are looked at, the second half is chosen at random: otherwise exits that a host has blocked, and
-- that are therefore not used, would always come before all others.
local function window(pool, first, count, free, dice)
  local heap = EXITS_BASE .. 'free:' .. pool.name
  local start = first
  if pool.rotation == 'random' then
    start = (first + math.floor(dice * free)) % free
  elseif free > POLICY.exits_seen and first >= POLICY.exits_seen / 2 then
    start = POLICY.exits_seen / 2 + math.floor(dice * (free - POLICY.exits_seen))
      + first - POLICY.exits_seen / 2
  end
  local ids = call('ZRANGE', heap, start, start + count - 1)
  if #ids < count and start > first then
    for _, exit_id in ipairs(call('ZRANGE', heap, 0, count - #ids - 1)) do
      ids[#ids + 1] = exit_id
    end
  end
  return ids
end

-- Sort exits by their score at a host, the best first.
local function by_score(ids, host_name)
  local scores = {}
  exits.read(ids)
  exits.read_pairs(host_name, ids)
  for _, exit_id in ipairs(ids) do
    local exit = exits.known[exit_id]
    scores[exit_id] = exit and exit_policy.score_at(exits.pair(exit, host_name), exit, exits.now) or 0
  end
  table.sort(ids, function(a, b)
    if scores[a] ~= scores[b] then
      return scores[a] > scores[b]
    end
    return a < b
  end)
end

-- Iterate over the exits of a pool that may be used at a host, in the order in which they should be
-- used.
function lending.usable_ones(pool, host_name)
  lending.wake(pool)
  local free = call('ZCARD', EXITS_BASE .. 'free:' .. pool.name)
  local dice = math.random() -- A new one for each task; the worker has set the seed.
  local limit = math.min(free, POLICY.exits_seen)
  local ids, place, seen, is_known = sticking(pool, host_name), 0, 0, {}
  local function more()
    if seen >= limit then
      return false
    end
    local count = seen == 0 and pool.rotation ~= 'best' and FIRST_LOOK or limit - seen
    if seen < limit / 2 and free > POLICY.exits_seen and pool.rotation ~= 'best' then
      count = math.min(count, POLICY.exits_seen / 2 - seen)
    end
    count = math.min(count, limit - seen)
    ids, place = window(pool, seen, count, free, dice), 0
    seen = seen + count
    if pool.rotation == 'best' then
      by_score(ids, host_name)
    end
    exits.read(ids)
    exits.read_pairs(host_name, ids)
    return true
  end
  return function()
    while true do
      place = place + 1
      local exit_id = ids[place]
      if not exit_id then
        if not more() then
          return nil
        end
      elseif not is_known[exit_id] then
        is_known[exit_id] = true
        if lending.is_usable(exits.known[exit_id], pool, host_name) then
          return exits.known[exit_id]
        end
      end
    end
  end
end

-- Iterate over one exit, if it may be used at a host.
function lending.usable_one(pool, exit_id, host_name)
  local exit = exits.named(exit_id)
  return function()
    local found = exit
    exit = nil
    return found and lending.is_usable(found, pool, host_name) and found or nil
  end
end

local function was_blocked_by(blocks, exit, pool)
  if #blocks - 1 >= pool.listed then
    return false -- All exits of the pool have blocked it: any may be used again.
  end
  for i = 2, #blocks do
    if blocks[i] == exit.id then
      return true
    end
  end
  return false
end

-- The number of the first task for which there is an exit of the pool, and that exit. Or nothing.
function lending.choose(pool, host_name, tasks)
  local next_one, usable, is_over = lending.usable_ones(pool, host_name), {}, false
  for number, task in ipairs(tasks) do
    local i = 1
    while true do
      if not usable[i] and not is_over then
        usable[i] = next_one()
        is_over = not usable[i]
      end
      local exit = usable[i]
      if not exit then
        break
      end
      if not was_blocked_by(task.blocks, exit, pool) then
        return number, exit
      end
      i = i + 1
    end
    if is_over and #usable == 0 then
      return nil
    end
  end
  return nil
end

-- The outlook of a pool without exits.
function lending.no_outlook()
  return {listed = 0, out = 0, cooling = 0, busy = 0, full = 0, usable = 0, at = math.huge}
end

-- The state of the exits of a pool, at a host or without one: how many are out, cooling down, and
-- merely busy; how many of the busy ones are so until a lease ends; how many may be used; and when
-- the next one may be, which is infinity if time alone frees none. For an exit that is out the host
-- does not matter, so the numbers of these are the same for all hosts.
function lending.outlook(pool, host_name)
  local told = lending.no_outlook()
  told.listed = pool.listed
  local ids
  if pool.listed <= POLICY.exits_seen then
    ids = call('SMEMBERS', EXITS_BASE .. 'listed:' .. pool.name)
  else
    local later = EXITS_BASE .. 'later:' .. pool.name
    ids = call('ZRANGE', later, 0, POLICY.exits_seen - 1)
    told.busy = call('ZCARD', later) < pool.listed and 1 or 0 -- Others may be full.
    told.full = told.busy
  end
  exits.read(ids)
  if host_name then
    exits.read_pairs(host_name, ids)
  end
  for _, exit_id in ipairs(ids) do
    local exit = exits.known[exit_id]
    local is_out = exit and exit.out_until > exits.now
    local pair = exit and not is_out and host_name and exits.pair(exit, host_name)
    local at = exit and exit_policy.exit_ready_at(exit, pool) or math.huge
    at = math.max(at, exit_policy.pair_ready_at(pair))
    if is_out then
      told.out = told.out + 1
    elseif pair and pair.cool_until > exits.now then
      told.cooling = told.cooling + 1
    elseif at > exits.now then
      told.busy = told.busy + 1
      told.full = told.full + (at == math.huge and 1 or 0)
    else
      told.usable = told.usable + 1
    end
    if at > exits.now then
      told.at = math.min(told.at, at)
    end
  end
  return told
end

-- When looking again makes sense, if some exits are busy.
function lending.again_at(told)
  return told.full > 0 and math.min(told.at, exits.now + POLICY.busy_wait) or told.at
end

local function look_at_pool(pool)
  lending.wake(pool)
  if call('ZCARD', EXITS_BASE .. 'free:' .. pool.name) > 0 then
    return 0
  end
  local told = lending.outlook(pool)
  return told.busy > 0 and lending.again_at(told) or nil
end

-- Until when the lanes of a pool need not be looked at: if no exit of it, or of the pools above it,
-- may be used now, and some are merely busy. False if they should be looked at now.
function lending.held_up(pool_name, has_pools)
  local first = false
  for _, name in ipairs(exit_policy.tiers(pool_name, exits.pool)) do
    local pool = has_pools[name] and exits.pool(name)
    local at = pool and look_at_pool(pool)
    if at == 0 then
      return false
    elseif at then
      first = math.min(first or math.huge, at)
    end
  end
  return first
end

end
