-- Handles lanes for which no exit can be used: when they are looked at again, and when their tasks
-- die. Needs lane_granting.lua, lending.lua.

do

-- The pool of the lane's tier, or, if that may not spend, the highest one below that may; and the
-- pool below its tier, if that is to be probed.
function serving.pools_for(lane, state)
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

-- Note that a lane was looked at. If it was not for long, its crawl stood still, and the time since
-- which the lane is starved begins anew.
function serving.note_look(lane, state, is_starved)
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

-- Convert a moment of the exits' clock to the crawl's own clock.
function serving.own_moment(at)
  return at - exits.now + now
end

-- Complete the reason for which tasks die: append the state of the exits to its beginning.
function serving.starved_reason(reason, told, may_spend)
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
  local kind = identities.is_ours(lane.pool) and KINDS.login or KINDS.exit
  keep_as_dead(lane, priority, entry, kind, reason, '')
  leave_chain(entry)
  lanes.forget_task(fingerprint_of(entry))
  lane.waiting = lane.waiting - 1
  counts.waiting = counts.waiting - 1
end

-- Let tasks of a lane die for which no exit could be used for too long. A suspect dies alone.
local function let_die(lane, tasks, reason)
  if tasks[1].stored then
    serving.remove_task(tasks[1])
    lane.suspects = lane.suspects - 1
    let_one_die(lane, tasks[1].priority, tasks[1].entry, reason)
    return
  end
  local entries, priorities = take(lane, POLICY.starved_batch)
  for i, entry in ipairs(entries) do
    let_one_die(lane, priorities[i], entry, reason)
  end
end

-- Put off a lane that waits for more than the end of a lease or the pace of an exit. `at` is the
-- moment at which that may change. If it takes too long, the lane's tasks die.
function serving.starve(lane, state, tasks, at, timeout, reason)
  serving.note_look(lane, state, true)
  local dies_at = state.starved_at + timeout
  if exits.now >= dies_at then
    let_die(lane, tasks, reason)
    at = exits.now
  end
  -- Look again early enough: after a longer gap, note_look would let the time begin anew.
  at = math.min(at, math.max(dies_at, exits.now), exits.now + POLICY.unseen / 2)
  lane.next = serving.own_moment(at)
end

-- Put off a lane that only waits for the end of a lease or the pace of an exit.
function serving.wait(lane, state, at)
  serving.note_look(lane, state, false)
  lane.next = serving.own_moment(at)
end

-- The state of the exits of a pool for a host, as lending.outlook returns it; whether the pool may
-- spend; and whether it is merely busy.
function serving.outlook(name, host_name)
  local pool = exits.pool(name)
  if not pool then
    return lending.no_outlook(), true, false
  end
  local told = lending.outlook(pool, host_name)
  if exit_policy.may_spend(exits.cost(name), pool, exits.now) then
    return told, true, told.busy > 0
  end
  told.full = 1
  told.at = (math.floor(exits.now / pool.budget_period) + 1) * pool.budget_period
  return told, false, exits.cost(name).leased > 0
end

-- No exit of the pool could be used for the lane, though its host may be hit. Returns whether its
-- tasks may leave directly. If not, the lane is put off; if that lasts too long, its tasks die.
function serving.put_off(lane, state, tasks)
  local own = exits.pool(lane.pool)
  local told, may_spend, is_busy = serving.outlook(serving.pools_for(lane, state), lane.host.name)
  if is_busy then
    serving.wait(lane, state, lending.again_at(told))
    return false
  end
  if own and own.allow_direct then
    serving.wait(lane, state, exits.now)
    return true
  end
  local head = own and own.starved or STARVED.head:format(lane.pool)
  local reason = serving.starved_reason(head, told, may_spend)
  serving.starve(lane, state, tasks, told.at, own and own.timeout or POLICY.pool_timeout, reason)
  return false
end

end
