-- Takes back exits and accounts that were lent with leases which are void: their crawl may have no
-- workers left to end them. Needs step.lua, exits.lua, identities.lua.

do

-- Whether a lease still has an exit or an account that was lent with it.
local function has_any(task)
  local lent, account = task and task[8], task and task[9]
  return lent and (lent[1] ~= '' or account and account[1] ~= '')
end

-- Take back everything that was lent with leases of a crawl, which is cancelled or forgotten.
function exits.unlend_all()
  local all = call('HGETALL', prefix .. 'held')
  for i = 2, #all, 2 do
    local task = cmsgpack.unpack(all[i])
    if has_any(task) then
      exits.give_back(task, task[1]:match('[^ ]*$'), true) -- Its worker may not know yet.
    end
  end
end

-- Whether a crawl may still have leases: it was neither cancelled nor forgotten since it got lanes.
local function has_leases(its_prefix)
  local base, its_id = its_prefix:match('^(.*:)([^:]+):$')
  local stored = call('HMGET', base .. 'crawl', 'id', 'state')
  return stored[1] == its_id and stored[2] ~= 'cancelled'
end

-- Expired leases of a crawl. If there are too many, a random part of them, because leases with
-- which nothing was lent, or that were looked at before, stay until a worker asks their crawl.
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

-- From time to time, take back what was lent with expired leases of other crawls: these may have no
-- workers left to do so.
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
