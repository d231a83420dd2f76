-- The exits of all crawls: their records, and which of them may be used when. Needs step.lua,
-- exit_policy.lua.
--
-- All keys begin with shoal:{exits}: and are in one slot; a crawl with pools is in the same slot,
-- see names.py.
--
-- clock           string  packed {latest, ahead, swept at}: the exits have their own clock, see
--                         clock.py. All moments in these keys are by this clock
-- crawls          set     the prefixes of the keys of crawls with lanes
-- pools           hash    pool -> packed rules, see exit_forms.py, and `listed`: how many exits it
--                         has
-- rules           hash    pool -> its rules as JSON, for people and clients
-- spent           hash    pool -> packed numbers: what it has cost, and its requests in flight
-- exits           hash    exit -> packed values, see exit_forms.py
-- listed:POOL     set     the exits that are listed
-- free:POOL       zset    exits that may be used now, by their rank: when they were last used
-- later:POOL      zset    exits that may be used later, by the moment. An exit that is full is in
--                         neither
-- at:HOST         hash    exit -> packed pair, see exit_forms.py
-- stick:POOL:HOST zset    exits by which the host is to be visited first, by when that began
-- cooling         zset    EXIT SESSION HOST of pairs that cool down, by the moment that ends; read
--                         only by clients

local exits = {known = {}, pools = {}, costs = {}, at = {}, changed = {}, pairs_changed = {}}

do

function exits.open()
  if exits.now then
    return
  end
  local packed = call('GET', EXITS_BASE .. 'clock')
  local stored = packed and cmsgpack.unpack(packed) or {0, 0}
  exits.now, exits.latest, exits.ahead = clock + stored[2], stored[1], stored[2]
  exits.swept = stored[3] or 0
  if exits.now < exits.latest - POLICY.clock_jump then
    exits.now, exits.ahead, exits.has_jumped = exits.latest, exits.latest - clock, true
  end
end

-- The rules of a pool, or false if it was never put here.
function exits.pool(name)
  local pool = exits.pools[name]
  if pool == nil then
    local packed = call('HGET', EXITS_BASE .. 'pools', name)
    pool = packed and cmsgpack.unpack(packed) or false
    exits.pools[name] = pool
  end
  return pool
end

-- The record of what a pool has cost.
function exits.cost(name)
  local cost = exits.costs[name]
  if not cost then
    local packed = call('HGET', EXITS_BASE .. 'spent', name)
    cost = spent_of(packed and cmsgpack.unpack(packed) or NEW_SPENT)
    exits.costs[name] = cost
  end
  return cost
end

-- Read exits that will be needed, all at once.
function exits.read(ids)
  local wanted = {}
  for _, exit_id in ipairs(ids) do
    if exits.known[exit_id] == nil then
      wanted[#wanted + 1] = exit_id
    end
  end
  for i, packed in ipairs(ask_many('HMGET', EXITS_BASE .. 'exits', wanted)) do
    local exit = packed and exit_of(cmsgpack.unpack(packed))
    exits.known[wanted[i]] = exit
    if exit then
      exit.id = wanted[i]
      -- If not, it is not in `later`: when it was last lent, it stayed free, or became full.
      exit.may_be_later = math.max(exit.next_at, exit.out_until) > exit.used_at
    end
  end
end

-- Make the record of a new exit.
function exits.make(exit_id)
  local exit = exit_of(NEW_EXIT)
  exit.id = exit_id
  exits.known[exit_id], exits.changed[exit_id] = exit, true
  return exit
end

-- When an exit may be used, whatever the host. Infinity if that needs more than time to pass.
function exits.ready_at(exit, pool)
  return exit_policy.exit_ready_at(exit, pool)
end

-- The rank of an exit among those that may be used: the lowest goes first.
function exits.rank(exit)
  return exit.used_at
end

-- An exit, or false if it was never listed.
function exits.named(exit_id)
  if exits.known[exit_id] == nil then
    exits.read({exit_id})
  end
  return exits.known[exit_id]
end

-- Read the pairs of exits with a host, all at once.
function exits.read_pairs(host_name, ids)
  local known = exits.at[host_name] or {}
  exits.at[host_name] = known
  local wanted = {}
  for _, exit_id in ipairs(ids) do
    if known[exit_id] == nil then
      wanted[#wanted + 1] = exit_id
    end
  end
  for i, packed in ipairs(ask_many('HMGET', EXITS_BASE .. 'at:' .. host_name, wanted)) do
    known[wanted[i]] = packed and pair_of(cmsgpack.unpack(packed))
  end
end

-- The pair of an exit with a host, or nothing. A pair of another session does not count.
function exits.pair(exit, host_name)
  local known = exits.at[host_name]
  if not known or known[exit.id] == nil then
    exits.read_pairs(host_name, {exit.id})
    known = exits.at[host_name]
  end
  local pair = known[exit.id]
  return pair and pair.session == exit.session and pair or nil
end

function exits.keep_pair(exit, host_name, pair)
  exits.at[host_name] = exits.at[host_name] or {}
  exits.at[host_name][exit.id] = pair or false
  exits.pairs_changed[host_name] = exits.pairs_changed[host_name] or {}
  exits.pairs_changed[host_name][exit.id] = true
end

-- Note that an exit has changed: it gets its new place among other exits at once, and is written
-- back later.
function exits.touch(exit)
  local pool, rank = exits.pool(exit.pool), exits.rank(exit)
  local ready_at = pool and exits.ready_at(exit, pool) or math.huge
  local free, later = EXITS_BASE .. 'free:' .. exit.pool, EXITS_BASE .. 'later:' .. exit.pool
  local is_later = ready_at > exits.now and ready_at < math.huge
  exits.changed[exit.id] = true
  if ready_at > exits.now then
    call('ZREM', free, exit.id)
  elseif exit.placed ~= rank then
    call('ZADD', free, whole(rank), exit.id)
  end
  exit.placed = ready_at <= exits.now and rank or nil
  if is_later then
    call('ZADD', later, whole(ready_at), exit.id)
  elseif exit.may_be_later then
    call('ZREM', later, exit.id)
  end
  exit.may_be_later = is_later
end

-- Make exits of a pool free whose moment has come.
function exits.wake(pool_name)
  local later = EXITS_BASE .. 'later:' .. pool_name
  local due = call('ZRANGEBYSCORE', later, '-inf', whole(exits.now), 'LIMIT', 0, POLICY.exits_woken)
  local scores = {}
  exits.read(due)
  for _, exit_id in ipairs(due) do
    local exit = exits.known[exit_id]
    if exit then
      exit.placed, exit.may_be_later = exits.rank(exit), false
      scores[#scores + 1] = whole(exit.placed)
      scores[#scores + 1] = exit_id
    end
  end
  call_many('ZADD', EXITS_BASE .. 'free:' .. pool_name, scores)
  call_many('ZREM', later, due)
end

-- When one more request may leave by an exit that is lent already.
function exits.turn_at(exit, host_name)
  local pair = exits.pair(exit, host_name)
  return math.max(exit.next_at, pair and pair.next_at or 0)
end

-- Reserve a turn of an exit for one more request at a host.
function exits.reserve(exit, host_name)
  local pair = exits.pair(exit, host_name)
  local kept = exit_policy.reserve(exit, pair, exits.pool(exit.pool), exits.now)
  if kept then
    exits.keep_pair(exit, host_name, kept)
  end
  exits.touch(exit)
end

-- Lend an exit for a lease. Returns what the lease stores about it: {exit, session, pool, leased
-- at, blocks of the task}.
function exits.lend(exit, host_name, pool, blocks)
  local pair = exit_policy.lend(exit, exits.pair(exit, host_name), pool, exits.now)
  if pair then
    exits.keep_pair(exit, host_name, pair)
    if pool.sticky > 0 and pair.since == exits.now then
      local stick = EXITS_BASE .. 'stick:' .. pool.name .. ':' .. host_name
      call('ZADD', stick, whole(pair.since), exit.id)
      call('PEXPIRE', stick, whole(math.ceil((pool.sticky + POLICY.pairs_kept) / 1000)))
    end
  end
  exits.touch(exit)
  local cost = exits.cost(pool.name)
  cost.leased, cost.is_changed = cost.leased + 1, true
  return {exit.id, exit.session, pool.name, exits.now, blocks}
end

-- Free the exit of a lease that has ended in any way. Returns the exit, and its pair with the host.
function exits.unlend(lent, host_name)
  local exit = lent[1] ~= '' and exits.named(lent[1])
  if not exit then
    return nil
  end
  exits.open()
  local pair = exits.pair(exit, host_name)
  local was_tried = pair and pair.is_tried
  exit_policy.unlend(exit, pair, lent[4])
  if pair and was_tried ~= pair.is_tried then
    exits.keep_pair(exit, host_name, pair)
  end
  exits.touch(exit)
  local cost = exits.cost(exit.pool)
  cost.leased, cost.is_changed = math.max(cost.leased - 1, 0), true
  return exit, pair
end

-- Count a request that was sent by an exit, and its bytes on the wire.
function exits.count(exit, wire_bytes)
  local pool, cost = exits.pool(exit.pool), exits.cost(exit.pool)
  exit.requests = exit.requests + 1
  exit.wire_bytes = exit.wire_bytes + wire_bytes
  if pool then
    exit_policy.spend(cost, pool, wire_bytes, exits.now)
    cost.is_changed = true
  end
end

-- Free what was lent with a lease, whose values are those of ID:held: its try has ended, or its
-- worker is gone. Returns what `unlend` returns.
function exits.give_back(task, host_name)
  return exits.unlend(task[8], host_name)
end

local function save_pairs(host_name, ids)
  local rows, removed, cooling = {}, {}, {}
  for exit_id in pairs(ids) do
    local pair = exits.at[host_name][exit_id]
    if not pair then
      removed[#removed + 1] = exit_id
    else
      rows[#rows + 1] = exit_id
      rows[#rows + 1] = cmsgpack.pack(pair_values(pair))
      if pair.cool_until > exits.now then
        cooling[#cooling + 1] = whole(pair.cool_until)
        cooling[#cooling + 1] = exit_id .. ' ' .. whole(pair.session) .. ' ' .. host_name
      end
    end
  end
  local key = EXITS_BASE .. 'at:' .. host_name
  call_many('HDEL', key, removed)
  call_many('HSET', key, rows)
  if #rows > 0 then
    call('PEXPIRE', key, whole(POLICY.pairs_kept / 1000))
  end
  if #cooling > 0 then
    call('ZREMRANGEBYSCORE', EXITS_BASE .. 'cooling', '-inf', whole(exits.now))
    call_many('ZADD', EXITS_BASE .. 'cooling', cooling)
  end
end

-- Write back all changes.
function exits.save()
  if not exits.now then
    return
  end
  local rows, costs = {}, {}
  for exit_id in pairs(exits.changed) do
    rows[#rows + 1] = exit_id
    rows[#rows + 1] = cmsgpack.pack(exit_values(exits.known[exit_id]))
  end
  for name, cost in pairs(exits.costs) do
    if cost.is_changed then
      cost.is_changed = nil
      costs[#costs + 1] = name
      costs[#costs + 1] = cmsgpack.pack(spent_values(cost))
    end
  end
  call_many('HSET', EXITS_BASE .. 'exits', rows)
  call_many('HSET', EXITS_BASE .. 'spent', costs)
  for host_name, ids in pairs(exits.pairs_changed) do
    save_pairs(host_name, ids)
  end
  exits.changed, exits.pairs_changed = {}, {}
  if exits.now > exits.latest or exits.has_jumped then
    exits.latest, exits.has_jumped = exits.now, nil
    call('SET', EXITS_BASE .. 'clock', cmsgpack.pack({exits.latest, exits.ahead, exits.swept}))
  end
end

end
