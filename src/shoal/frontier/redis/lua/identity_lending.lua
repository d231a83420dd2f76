-- Finds the account for a task, and the exit that the account uses, if any. Needs lending.lua,
-- identities.lua.

local identity_lending = {}

do

-- How many accounts are looked at first: mostly one of them can be used.
local FIRST_LOOK = 8

-- Iterate over the accounts of a group that a worker may use at a host; with `only`, over that one.
function identity_lending.usable_ones(group, only, host_name, worker)
  local next_one = only and lending.usable_one(group, only, host_name)
    or lending.usable_ones(group, host_name)
  return function()
    while true do
      local exit = next_one()
      if not exit or identity_policy.may_use(exit.account, exit, worker) then
        return exit
      end
    end
  end
end

-- The exit that an account is bound to, or nothing: then it has to get another.
local function bound_exit(account, through, host_name)
  local exit = account.through ~= '' and exits.named(account.through)
  if not exit or exit.pool ~= through.name then
    return nil
  end
  local pair = exits.pair(exit, host_name)
  return identity_policy.is_bound(account, exit, pair, exits.now) and exit or nil
end

-- Returns a function that finds the exit for an account of a group at a host. That returns whether
-- the account may be used, the exit, if its group uses a pool, and whether that is another exit
-- than before. An account that has to wait for its exit may not be used.
function identity_lending.ways(group, host_name)
  if group.through == '' then
    return function()
      return true
    end
  end
  local through = exits.pool(group.through)
  if not through or not exit_policy.may_spend(exits.cost(group.through), through, exits.now) then
    return function()
      return false
    end
  end
  local other = nil
  return function(exit)
    local bound = bound_exit(exit.account, through, host_name)
    if bound then
      return lending.is_usable(bound, through, host_name), bound, false
    elseif exit.leased > 0 then
      return false -- It has to log in anew, but not while other requests of it are in flight.
    end
    if other == nil then
      other = lending.usable_ones(through, host_name)() or false
    end
    return other, other, true
  end
end

-- Whether an account goes before another; both have to log in. The one that was not used for longer
-- goes first.
local function is_before(exit, other)
  if not other or exit.used_at ~= other.used_at then
    return not other or exit.used_at < other.used_at
  end
  return exit.id < other.id
end

-- Choose an account that may be used. Returns it and its exit, if it uses one; or nothing. Accounts
-- that have to log in go last, also if that is only because their exit can no longer be used.
function identity_lending.choose(group, only, host_name, worker)
  local way_of = identity_lending.ways(group, host_name)
  local found, by_exit
  for exit in identity_lending.usable_ones(group, only, host_name, worker) do
    local is_in = exit.account.is_in
    local may_go, through, is_other = way_of(exit)
    if may_go and is_in and not is_other then
      return exit, through
    elseif may_go and is_before(exit, found) then
      found, by_exit = exit, through
    end
    if found and not is_in then
      break -- Those behind it have to log in as well, and were used more recently.
    end
  end
  return found, by_exit
end

-- Some of the accounts of a group, and whether others are in use. If there are too many to look at
-- all of them: the first of those that are free, and of those that rest, among which banned ones
-- come last.
local function some_of(group)
  if group.listed <= POLICY.exits_seen then
    return call('SMEMBERS', EXITS_BASE .. 'listed:' .. group.name), false
  end
  local ids, known = {}, 0
  for _, heap in ipairs({'free:', 'later:'}) do
    local key = EXITS_BASE .. heap .. group.name
    for _, exit_id in ipairs(call('ZRANGE', key, 0, POLICY.exits_seen / 2 - 1)) do
      ids[#ids + 1] = exit_id
    end
    known = known + call('ZCARD', key)
  end
  return ids, known < group.listed
end

local function look_at(told, exit, group, host_name, worker)
  local at = exits.ready_at(exit, group)
  at = math.max(at, host_name and exit_policy.pair_ready_at(exits.pair(exit, host_name)) or 0)
  local may_use = identity_policy.may_use(exit.account, exit, worker)
  local is_for_another = at <= exits.now and not may_use
  if exit.out_until > exits.now then
    local kind = exit.account.is_banned and 'banned' or 'resting'
    told[kind] = told[kind] + 1
  elseif at > exits.now or not may_use then
    told.busy = told.busy + 1
    told.full = told.full + ((at == math.huge or is_for_another) and 1 or 0)
    told.others = told.others + (is_for_another and 1 or 0)
  else
    told.usable = told.usable + 1
    told.shared = told.shared + (exit.leased > 0 and 1 or 0)
  end
  if at > exits.now then
    told.at = math.min(told.at, at)
  end
end

-- The state of the accounts of a group, or of one of them, as a worker sees it: how many it may
-- use, and how many of these although requests of them are in flight; how many rest, are banned, or
-- are merely busy; how many of the busy ones are so until a lease ends, and how many because
-- another worker uses them; and when the next one may be used.
function identity_lending.outlook(group, only, host_name, worker)
  local told = {listed = 0, usable = 0, resting = 0, banned = 0, at = math.huge}
  told.busy, told.full, told.shared, told.others = 0, 0, 0, 0
  if not group then
    return told
  end
  local ids, are_more = {only}, false
  if not only then
    ids, are_more = some_of(group)
  end
  exits.read(ids)
  for _, exit_id in ipairs(ids) do
    local exit = exits.known[exit_id]
    if exit and exit.is_listed then
      told.listed = told.listed + 1
      look_at(told, exit, group, host_name, worker)
    end
  end
  if are_more then
    told.busy, told.full = told.busy + 1, told.full + 1
  elseif not only and told.banned == told.listed then
    told.banned = group.listed
  end
  told.listed = only and told.listed or group.listed
  return told
end

-- Whether a worker may use one of the first accounts of a group.
local function may_use_first(group, worker)
  local ids = call('ZRANGE', EXITS_BASE .. 'free:' .. group.name, 0, FIRST_LOOK - 1)
  exits.read(ids)
  for _, exit_id in ipairs(ids) do
    local exit = exits.known[exit_id]
    if exit and exits.ready_at(exit, group) <= exits.now
      and identity_policy.may_use(exit.account, exit, worker) then
      return true
    end
  end
  return false
end

-- Until when the lanes of a group need not be looked at: if the worker may use none of its accounts
-- now, and some are merely busy. False if they should be looked at now.
function identity_lending.held_up(group, worker)
  lending.wake(group)
  if may_use_first(group, worker) then
    return false
  end
  local told = identity_lending.outlook(group, nil, nil, worker)
  if told.usable > 0 or told.busy == 0 then
    return false
  end
  return lending.again_at(told)
end

end
