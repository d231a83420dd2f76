-- Hands out tasks, for lease.lua, whose arguments it reads. Needs step.lua, shares.lua, hosts.lua,
-- sharing.lua, queue.lua, chains.lua, losing.lua.

local worker, limit, token = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local may_suspect = ARGV[5] == '1'
local granted = {}
local has = ARGV[6] ~= '' and cmsgpack.unpack(ARGV[6]) or {}
local shares, has_given = {}, {}

-- Give back what an earlier call has granted: its answer was lost, so the worker never got it.
local function undo(tokens)
  local held = ask_many('HMGET', prefix .. 'held', tokens)
  for i = #tokens, 1, -1 do -- The last one first, so that they wait in their old order.
    local packed = held[i]
    if packed then
      local host_name, priority, entry, holder, leased_at, reserved, is_shared = values_of(packed)
      local host = host_named(host_name)
      host.leased = host.leased - 1
      if is_shared then
        note_shared(host_name, -1)
      end
      counts.leased = counts.leased - 1
      note_holding(holder, -1)
      free_turn(host, leased_at, reserved)
      enqueue('LPUSH', host, priority, entry)
      end_lease(tokens[i])
    end
  end
end

local function wake_delayed()
  local delayed = prefix .. 'delayed'
  local due = call('ZRANGEBYSCORE', delayed, '-inf', whole(now), 'LIMIT', 0, POLICY.reclaim_batch)
  for _, packed in ipairs(due) do
    local host_name, priority, entry = values_of(packed)
    -- Behind all that waits: a host's failures must not delay its other pages.
    enqueue('RPUSH', host_named(host_name), priority, entry)
    counts.delayed = counts.delayed - 1
    call('ZREM', delayed, packed)
  end
end

local function reclaim_expired()
  local due = prefix .. 'due'
  local expired = call('ZRANGEBYSCORE', due, '-inf', whole(now), 'LIMIT', 0, POLICY.reclaim_batch)
  for _, late in ipairs(expired) do
    lose(late, call('HGET', prefix .. 'held', late))
  end
end

-- Take the best entries of a host from its queues, at most `count`, and return them with their
-- priorities. Priorities of empty queues are removed.
local function take(host, count)
  local entries, priorities = {}, {}
  local best = best_priority(host)
  while best and #entries < count do
    local wanted = count - #entries
    local popped = call('LPOP', prefix .. 'q:' .. best .. ':' .. host.name, wanted) or {}
    for _, entry in ipairs(popped) do
      entries[#entries + 1] = entry
      priorities[#entries] = best
    end
    if #popped < wanted then
      table.remove(host.priorities, 1)
    end
    best = best_priority(host)
  end
  return entries, priorities
end

-- Divide the room of the hosts of which the worker has shares anew. It can take `most` tasks.
local function divide_own(most)
  local own = {}
  for name in pairs(has) do
    own[#own + 1] = name
  end
  if #own == 0 then
    return
  end
  read_shares(own)
  for i, packed in ipairs(ask_many('HMGET', prefix .. 'hosts', own)) do
    local name = own[i]
    local host = hosts[name] or packed and unpack_host(name, packed)
    shares[name] = 0 -- For a host that is not of this crawl.
    if host then
      local is_waiting = most > 0 and host.waiting > host.suspects
      local wants = state == 'running' and (has[name][2] > 0 or is_waiting)
      shares[name] = divide(host, worker, has[name][1], wants)
    end
  end
end

-- Take back the worker's shares of hosts of which it has nothing, and was given nothing.
local function leave_idle()
  for name, own in pairs(has) do
    if shares[name] > 0 and own[1] + own[2] == 0 and not has_given[name] then
      shares[name] = divide(hosts[name], worker, 0, false)
    end
  end
end

-- The shares to return: of the hosts that the worker named, and of new ones.
local function told_shares()
  local told = {}
  for name, share in pairs(shares) do
    if has[name] or share > 0 then
      told[#told + 1] = name
      told[#told + 1] = share
    end
  end
  return told
end

local held, due, count = {}, {}, 0

local function grant(host, entries, priorities, is_shared)
  local expires = whole(now + rules.lease)
  local interval = interval_of(host)
  local paced = interval > 0 and 1 or 0
  local robots_at = whole(knows_robots(host) and host.robots_at or 0)
  host.waiting = host.waiting - #entries
  host.leased = host.leased + #entries
  host.next = now + interval
  counts.waiting = counts.waiting - #entries
  counts.leased = counts.leased + #entries
  note_holding(worker, #entries)
  if is_shared then
    note_shared(host.name, #entries)
  end
  local crowded = not is_shared and room_left(host) == 0 and 1 or 0
  local told = {host.name, robots_at, paced, crowded, is_shared and 1 or 0}
  for i, entry in ipairs(entries) do
    local priority = priorities[i]
    told[2 * i + 4], told[2 * i + 5] = priority, entry
    count = count + 1
    local own = token .. count
    local value = {host.name, priority, entry, worker, now, host.next, is_shared and 1 or nil}
    local packed = cmsgpack.pack(value)
    held[2 * count - 1], held[2 * count] = own, packed
    due[2 * count - 1], due[2 * count] = expires, own
  end
  granted[#granted + 1], has_given[host.name] = told, true
end

-- How many tasks of a host the worker may be given as shared leases.
local function shared_limit(host)
  local name = host.name
  local own = has[name] or {0, 0}
  shares[name] = shares[name] or divide(host, worker, own[1], true)
  return shares[name] * POLICY.ahead_per_share - own[2]
end

-- Give the worker tasks of a host, at most `wanted`, as far as they and the room suffice. Returns
-- whether it was given any.
local function serve(host, wanted)
  wanted = math.min(wanted, host.waiting - host.suspects)
  local most = room_left(host)
  local is_shared = (wanted > most or is_shared_by_any(host.name)) and is_shareable(host)
  if is_shared then
    most = shared_limit(host)
  end
  local entries, priorities = take(host, math.min(wanted, most))
  if #entries == 0 then
    host.next = now -- Behind other hosts, which may have work to give.
    return false
  end
  grant(host, entries, priorities, is_shared)
  return true
end

-- Serve hosts in turn. Returns whether one of them gave nothing, because other workers have its
-- room.
local function serve_hosts(ready, most)
  local is_withheld = false
  read_hosts(ready)
  read_shares(ready)
  for i, name in ipairs(ready) do
    local host = host_named(name)
    local portion = math.ceil((most - count) / (#ready - i + 1))
    -- A lane of the host may have used its turn.
    if host.next <= now and not serve(host, interval_of(host) > 0 and 1 or portion) then
      is_withheld = true
    end
  end
  return is_withheld
end

-- Serve the ready hosts; if the first ones give nothing, those behind them. Returns what
-- serve_hosts returns.
local function serve_ready_hosts(most)
  local heap, seen, is_withheld = prefix .. 'ready', 0, false
  repeat
    local ready = call('ZRANGEBYSCORE', heap, '-inf', whole(now), 'LIMIT', seen, most)
    is_withheld = serve_hosts(ready, most) or is_withheld
    seen = seen + #ready
  until count > 0 or #ready < most or seen >= POLICY.withheld_seen
  return is_withheld
end

-- Give the worker, which has nothing else to lose, one suspect. Returns whether there was one.
local function serve_suspect()
  local suspects = prefix .. 'suspects'
  for _, packed in ipairs(call('LRANGE', suspects, 0, POLICY.suspects_seen - 1)) do
    local host_name, priority, entry = values_of(packed)
    local host = host_named(host_name)
    if host.next <= now and room_left(host) > 0 then
      host.suspects = host.suspects - 1
      grant(host, {entry}, {priority})
      call('LREM', suspects, 1, packed)
      return true
    end
  end
  return false
end

-- When a suspect may be handed out, as far as its host is concerned.
local function suspect_at(name)
  local host = host_named(name)
  return room_left(host) > 0 and host.next or math.huge
end

-- How long until asking again makes sense; -1 if only new work can change anything. `at_of` may
-- replace suspect_at.
local function next_moment(at_of)
  local first = math.huge
  local may_lease = limit > 0 and pages_left() > 0
  local orders = may_lease and {'due', 'delayed', 'ready'} or {'due', 'delayed'}
  for _, order in ipairs(orders) do
    local found = call('ZRANGE', prefix .. order, 0, 0, 'WITHSCORES')
    first = math.min(first, tonumber(found[2]) or math.huge)
  end
  if may_lease then
    for _, packed in ipairs(call('LRANGE', prefix .. 'suspects', 0, POLICY.suspects_seen - 1)) do
      first = math.min(first, (at_of or suspect_at)(cmsgpack.unpack(packed)[1]))
    end
  end
  return first < math.huge and math.max(first - now, 0) or -1
end
