-- The queues of a shard, and its tasks that are in no queue. Needs step.lua, hosts.lua.
--
-- ID:q:PRIORITY:HOST  list  entries that wait, the next one first
-- ID:suspects         list  packed {host, priority, entry}: several workers died with these
-- ID:held             hash  token -> packed {host, priority, entry, worker, leased at, reserved},
--                           and then 1 if the lease is shared, see shares.lua. For a lane, instead:
--                           false, what exits.lend returned for its exit, and the same for its
--                           account, with the task's expired logins in place of its blocks
-- ID:holding          hash  worker -> how many leases it has
-- ID:due              zset  tokens by the moment their lease expires
-- ID:delayed          zset  packed {host, priority, entry, token} by the moment of the next try.
--                           The token is that of the last try: a task may be there twice
-- ID:dead             hash  fingerprint -> packed {host, priority, entry, reason, detail, kind}; an
--                           earlier version noted no kind
-- ID:died             zset  fingerprints of dead tasks by the moment they died, by the server's
--                           clock; 0 if an earlier version did not note it
-- ID:dropped          hash  fingerprint -> reason
-- ID:robots           hash  host -> robots.txt, see stored_robots.py
--
-- An entry is 8 bytes of fingerprint, a byte each for failed tries and lost workers, the chain if
-- it has one (see chains.lua), and the task.

-- An owner names a lease in the calls of its holder: 8 bytes of fingerprint, then the token.

local function fingerprint_of(entry)
  return entry:sub(1, 8)
end

-- For each owner, the values that ID:held has of its task, or false.
local function held_by(owners)
  if #owners == 0 or state == 'cancelled' then
    return {}
  end
  local tokens = {}
  for i, owner in ipairs(owners) do
    tokens[i] = owner:sub(9)
  end
  local held = ask_many('HMGET', prefix .. 'held', tokens)
  for i, packed in ipairs(held) do
    local task = packed and cmsgpack.unpack(packed)
    held[i] = task and fingerprint_of(task[3]) == owners[i]:sub(1, 8) and task
  end
  return held
end

local function end_lease(token)
  call('HDEL', prefix .. 'held', token)
  call('ZREM', prefix .. 'due', token)
end

local function attempts_of(entry)
  return entry:byte(9)
end

local function losses_of(entry)
  return entry:byte(10)
end

local function with_counts(entry, attempts, losses)
  attempts, losses = math.min(attempts, POLICY.max_tries), math.min(losses, POLICY.max_losses)
  local bytes = string.char(attempts, losses)
  return entry:sub(1, 8) .. bytes .. entry:sub(11)
end

-- Put an entry into its queue: LPUSH at the front, RPUSH at the end.
local function enqueue(command, host, priority, entry)
  host.waiting = host.waiting + 1
  counts.waiting = counts.waiting + 1
  if losses_of(entry) >= POLICY.suspect_after then
    host.suspects = host.suspects + 1
    call('RPUSH', prefix .. 'suspects', cmsgpack.pack({host.name, priority, entry}))
    return
  end
  call(command, prefix .. 'q:' .. priority .. ':' .. host.name, entry)
  note_priority(host, priority)
end

-- Keep a task as dead. If fingerprints are forgotten after a time, a task of the same fingerprint
-- may be dead already: then this one is dropped.
local function keep_as_dead(host, priority, entry, kind, reason, detail)
  local fingerprint = fingerprint_of(entry)
  note_failure(kind, host.name)
  local packed = cmsgpack.pack({host.name, priority, entry, reason, detail, kind})
  if call('HSETNX', prefix .. 'dead', fingerprint, packed) == 0 then
    counts.dropped = counts.dropped + 1
    return
  end
  call('ZADD', prefix .. 'died', whole(clock), fingerprint)
  counts.dead = counts.dead + 1
end
