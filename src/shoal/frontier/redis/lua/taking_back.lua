-- Taking back what was lent with leases that are void: in their crawl there may be nobody left to end them. Needs
-- step.lua, exits.lua, identities.lua.

do

-- Whether a lease was lent anything, and has it still.
local function has_any(task)
  local lent, account = task and task[8], task and task[9]
  return lent and (lent[1] ~= '' or account and account[1] ~= '')
end

-- All leases of a crawl end: it is cancelled or forgotten.
function exits.unlend_all()
  local all = call('HGETALL', prefix .. 'held')
  for i = 2, #all, 2 do
    local task = cmsgpack.unpack(all[i])
    if has_any(task) then
      exits.give_back(task, task[1]:match('[^ ]*$'), true) -- Its worker may not know yet.
    end
  end
end

-- Whether a crawl is as it was when it got lanes: one that is cancelled or forgotten has no leases.
local function has_leases(its_prefix)
  local base, its_id = its_prefix:match('^(.*:)([^:]+):$')
  local stored = call('HMGET', base .. 'crawl', 'id', 'state')
  return stored[1] == its_id and stored[2] ~= 'cancelled'
end

-- Some leases that have expired, where there are many: any, because those that had nothing lent, or were looked at
-- before, stay among them until somebody comes back to their crawl.
local function some_expired(its_prefix)
  local key, most = its_prefix .. 'due', POLICY.exits_woken
  local parts = math.ceil(call('ZCOUNT', key, '-inf', whole(clock)) / most)
  local first = parts > 1 and math.random(0, parts - 1) * most or 0
  return call('ZRANGEBYSCORE', key, '-inf', whole(clock), 'LIMIT', first, most)
end

local function take_back_expired(its_prefix)
  for _, token in ipairs(some_expired(its_prefix)) do
    local packed = call('HGET', its_prefix .. 'held', token)
    local task = packed and cmsgpack.unpack(packed)
    if has_any(task) then
      exits.give_back(task, task[1]:match('[^ ]*$'), true)
      task[8][1] = ''
      if task[9] then
        task[9][1] = ''
      end
      call('HSET', its_prefix .. 'held', token, cmsgpack.pack(task))
    end
  end
end

-- Now and then, take exits back whose leases have expired: in their crawl there may be nobody left to do so.
function exits.sweep()
  if exits.now < exits.swept + POLICY.sweep_every then
    return
  end
  exits.swept = exits.now
  for _, its_prefix in ipairs(call('SMEMBERS', EXITS_BASE .. 'crawls')) do
    if not has_leases(its_prefix) then
      call('SREM', EXITS_BASE .. 'crawls', its_prefix)
    elseif its_prefix ~= prefix then
      take_back_expired(its_prefix)
    end
  end
end

end
