-- Hands out tasks with accounts. Needs lane_leasing.lua, identity_lending.lua.

do

local is_ours = identities.is_ours
local plain_lend, plain_lend_one, plain_put_off = serving.lend, serving.lend_one, serving.put_off
local plain_pools_of, plain_is_served = serving.pools_of, serving.is_served
local plain_held_up, plain_is_known = serving.held_up, serving.is_known

-- The one account that a lane needs. Nothing: any account of its group will do.
local function only_of(lane)
  return lane.pool ~= lane.group and lane.pool or nil
end

-- A group and, if it has one, the pool that it uses.
function serving.pools_of(name)
  local group = is_ours(name) and exits.pool(name)
  if group and group.through ~= '' then
    return {name, group.through}
  end
  return plain_pools_of(name)
end

function serving.is_served(name)
  if not is_ours(name) then
    return plain_is_served(name)
  end
  for _, pool_name in ipairs(serving.pools_of(name)) do
    if not serving.has_pools[pool_name] then
      return false
    end
  end
  return true
end

function serving.is_known(lane)
  if is_ours(lane.pool) then
    return serving.is_served(lane.group)
  end
  return plain_is_known(lane)
end

function serving.held_up(name)
  if not is_ours(name) then
    return plain_held_up(name)
  end
  local group = exits.pool(name)
  return group and identity_lending.held_up(group, worker)
end

function serving.lend_one(lane, state, tasks)
  if not is_ours(lane.pool) then
    return plain_lend_one(lane, state, tasks)
  end
  local group, host_name = exits.pool(lane.group), lane.host.name
  if not group then
    return nil
  end
  local account, exit = identity_lending.choose(group, only_of(lane), host_name, worker)
  if account then
    local task = table.remove(tasks, 1)
    task.account = account
    serving.grant(lane, task, exit, exit and exits.pool(exit.pool))
  end
  return account
end

-- How often a task has met an expired login.
local function expired_of(task)
  return tonumber(call('HGET', prefix .. 'expired', fingerprint_of(task.entry))) or 0
end

-- Lend a task its account and its exit. The worker is also told the identity: {..., account, logged
-- in, cookies, user agent, login URL, expired}.
function serving.lend(lane, task, exit, pool)
  local lent, told, is_paced = plain_lend(lane, task, exit, pool)
  local account = task.account
  if not account then
    return lent, told, is_paced
  end
  local state = account.account
  if exit then
    identity_policy.bind(state, exit)
  end
  identity_policy.lend(state, worker)
  local kept = exits.lend(account, lane.host.name, exits.pool(lane.group), expired_of(task))
  identities.touch(account)
  told[6], told[7], told[8] = account.id, state.is_in and 1 or 0, identities.jar(account)
  told[9], told[10], told[11] = state.user_agent, state.login_url, kept[5]
  return lent, told, is_paced, kept
end

-- The reason for which tasks die when no account could be used.
local function starved_reason(lane, group, told)
  local name = lane.pool:sub(2)
  local are_all = told.banned == told.listed
  local head = are_all and UNUSABLE.none or group and group.starved or UNUSABLE.unknown
  local reason = head:format(name)
  if told.listed == 0 then
    return reason .. UNUSABLE.no_accounts
  end
  reason = reason .. (told.listed == 1 and UNUSABLE.one or UNUSABLE.many):format(told.listed)
  for _, kind in ipairs({'resting', 'banned'}) do
    if told[kind] > 0 then
      reason = reason .. UNUSABLE[kind]:format(told[kind])
    end
  end
  return reason
end

-- Put off a lane whose accounts may be used, but none with an exit: the state of the exits decides.
-- An account that is to get another exit waits until its requests in flight have ended, even if
-- there are exits that could be used.
local function put_off_for_exits(lane, state, tasks, group, is_shared)
  local told, may_spend, is_busy = serving.outlook(group.through, lane.host.name)
  local are_usable = may_spend and told.usable > 0
  if is_busy or are_usable then
    told.full = told.full + ((is_shared or not is_busy) and 1 or 0)
    serving.wait(lane, state, lending.again_at(told))
  else
    local reason = serving.starved_reason(group.starved_through, told, may_spend)
    serving.starve(lane, state, tasks, told.at, group.timeout, reason)
  end
end

function serving.put_off(lane, state, tasks)
  if not is_ours(lane.pool) then
    return plain_put_off(lane, state, tasks)
  end
  local group = exits.pool(lane.group)
  local told = identity_lending.outlook(group, only_of(lane), lane.host.name, worker)
  if told.usable > 0 and group.through ~= '' then
    put_off_for_exits(lane, state, tasks, group, told.shared > 0)
  elseif told.usable > 0 then
    serving.wait(lane, state, exits.now + POLICY.busy_wait)
  elseif told.others > 0 then
    serving.note_look(lane, state, false)
    serving.is_refused = true -- It is for the worker that uses the accounts, which need not wait.
  elseif told.busy > 0 then
    serving.wait(lane, state, lending.again_at(told))
  else
    local are_banned = told.listed > 0 and told.banned == told.listed
    local timeout = group and group.timeout or POLICY.pool_timeout
    local reason = starved_reason(lane, group, told)
    serving.starve(lane, state, tasks, told.at, are_banned and 0 or timeout, reason)
  end
  return false
end

end
