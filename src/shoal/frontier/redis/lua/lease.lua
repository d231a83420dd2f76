#!lua flags=allow-oom
-- Hand out tasks whose hosts may be hit now, and reserve their hosts' next turns.
--
-- uses     step pace hosts queue chains losing
-- ARGV[2]  the worker
-- ARGV[3]  how many at most
-- ARGV[4]  what the tokens begin with; a number from 1 on follows. Nobody has used it before
-- ARGV[5]  1 if a suspect may be handed out, 0 if the worker may hold tasks of other shards
-- ARGV...  tokens that may have been granted and never arrived: they are given back first
-- returns  {state, id, life, now, wait (-1: none), idle, whether the worker holds anything, alone,
--           {host, robots.txt stored at (0: unknown), paced, crowded, priority, entry, ...}, ...}
--
-- Atomic, because a turn that is free and a turn that is taken must be one decision for the fleet.

local worker, limit, token = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local may_suspect = ARGV[5] == '1'
if not open_crawl() then
  return unknown()
end

local granted = {}

-- The answer to an earlier request was lost on the way: nobody has seen these.
local function undo(tokens)
  local held = ask_many('HMGET', prefix .. 'held', tokens)
  for i = #tokens, 1, -1 do -- The last first: then they wait in the order they had.
    local packed = held[i]
    if packed then
      local host_name, priority, entry, holder, leased_at, reserved = values_of(packed)
      local host = host_named(host_name)
      host.leased = host.leased - 1
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
    -- Behind what waits: a host's failures must not keep its other pages from their turn.
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

-- A host's best entries, at most so many, and their priorities. Emptied queues are struck off.
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

local held, due, count = {}, {}, 0
local expires = whole(now + rules.lease)

local function grant(host, entries, priorities)
  local interval = interval_of(host)
  local paced = interval > 0 and 1 or 0
  local robots_at = whole(knows_robots(host) and host.robots_at or 0)
  host.waiting = host.waiting - #entries
  host.leased = host.leased + #entries
  host.next = now + interval
  counts.waiting = counts.waiting - #entries
  counts.leased = counts.leased + #entries
  note_holding(worker, #entries)
  local crowded = room_of(host) == 0 and 1 or 0
  local told = {host.name, robots_at, paced, crowded}
  for i, entry in ipairs(entries) do
    local priority = priorities[i]
    told[2 * i + 3], told[2 * i + 4] = priority, entry
    count = count + 1
    local own = token .. count
    local packed = cmsgpack.pack({host.name, priority, entry, worker, now, host.next})
    held[2 * count - 1], held[2 * count] = own, packed
    due[2 * count - 1], due[2 * count] = expires, own
  end
  granted[#granted + 1] = told
end

local function serve_ready_hosts(most)
  local ready = call('ZRANGEBYSCORE', prefix .. 'ready', '-inf', whole(now), 'LIMIT', 0, most)
  read_hosts(ready)
  for i, name in ipairs(ready) do
    local host = host_named(name)
    local share = math.ceil((most - count) / (#ready - i + 1))
    local wanted = math.min(interval_of(host) > 0 and 1 or share, room_of(host))
    local entries, priorities = take(host, wanted)
    if #entries > 0 then
      grant(host, entries, priorities)
    end
  end
end

-- One task that workers died with, for a worker that has nothing else to lose.
local function serve_suspect()
  local suspects = prefix .. 'suspects'
  for _, packed in ipairs(call('LRANGE', suspects, 0, POLICY.suspects_seen - 1)) do
    local host_name, priority, entry = values_of(packed)
    local host = host_named(host_name)
    if host.next <= now and room_of(host) > 0 then
      host.suspects = host.suspects - 1
      grant(host, {entry}, {priority})
      call('LREM', suspects, 1, packed)
      return true
    end
  end
  return false
end

-- When asking again makes sense.
local function next_moment()
  local first = math.huge
  local may_lease = limit > 0 and pages_left() > 0
  local orders = may_lease and {'due', 'delayed', 'ready'} or {'due', 'delayed'}
  for _, order in ipairs(orders) do
    local found = call('ZRANGE', prefix .. order, 0, 0, 'WITHSCORES')
    first = math.min(first, tonumber(found[2]) or math.huge)
  end
  if may_lease then
    for _, packed in ipairs(call('LRANGE', prefix .. 'suspects', 0, POLICY.suspects_seen - 1)) do
      local host = host_named(cmsgpack.unpack(packed)[1])
      if room_of(host) > 0 then
        first = math.min(first, host.next)
      end
    end
  end
  return first < math.huge and math.max(first - now, 0) or -1
end

if #ARGV > 5 and state ~= 'cancelled' then
  undo(arguments_from(6))
  save_hosts()
  close_crawl()
end
if state ~= 'running' then
  return {state, id, life(), whole(now), -1, is_idle(), 0, 0}
end
wake_delayed()
reclaim_expired()
advance_chains()
if #names > 0 then
  save_hosts() -- What was taken back can be handed out in this very step.
end

local most = math.min(limit, pages_left())
if most > 0 then
  serve_ready_hosts(most)
end
local alone, holds = 0, 0
if most > 0 and count == 0 and call('LLEN', prefix .. 'suspects') > 0 then
  holds = held_count(worker) > 0 and 1 or 0
  if holds == 0 and may_suspect and serve_suspect() then
    alone = 1
  end
end
call_many('HSET', prefix .. 'held', held)
call_many('ZADD', prefix .. 'due', due)
save_hosts()
close_crawl()
local wait = state == 'running' and next_moment() or -1
local answer = {state, id, life(), whole(now), whole(wait), is_idle(), holds, alone}
for _, told in ipairs(granted) do
  answer[#answer + 1] = told
end
return answer
