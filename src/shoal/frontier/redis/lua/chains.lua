-- Chains: tasks that go one after the other. Needs step.lua, hosts.lua, queue.lua.
--
-- ID:chains      hash  chain -> fingerprint of its task that was let go and has not ended
-- ID:chain:NAME  zset  fingerprints of tasks that are held back by an earlier one, by their turns
-- ID:blocked     hash  fingerprint -> packed {host, priority, entry} of tasks that are held back
-- ID:jars        hash  chain -> its cookies as JSON, if the crawl keeps them; see core/cookies.py
--
-- A task that is held back counts as waiting, but not for its host. The entry of a task of a chain
-- has, after its first ten bytes: a byte that begins no MessagePack, four bytes for its turn, the
-- length of the chain's name in two bytes, and the name. The turn is assigned here; clients send
-- no_turn, or next_turn for the target of a redirect, which is the same step as the task before.

local BEFORE_ALL = -2 ^ 40

local touched = {}

-- The name of an entry's chain, or nil.
local function chain_of(entry)
  if entry:byte(11) == POLICY.chained then
    return (struct.unpack('>I2c0', entry, 16))
  end
end

-- Note that a task has joined the chain, or has ended: the next one may have to be let go.
local function touch_chain(chain)
  if not touched[chain] then
    touched[chain] = true
    touched[#touched + 1] = chain
  end
end

-- Hold back a task, which counts as waiting already, until its turn. If fingerprints are forgotten
-- after a time, the same task may be held back already: then this one is dropped.
local function join_chain(host_name, priority, entry)
  local turn = struct.unpack('>I4', entry, 12)
  local score = turn
  if turn == POLICY.no_turn or turn == POLICY.next_turn then
    counts.turns = counts.turns + 1
    score = turn == POLICY.next_turn and counts.turns + BEFORE_ALL or counts.turns
    entry = entry:sub(1, 11) .. struct.pack('>I4', counts.turns) .. entry:sub(16)
  end
  local fingerprint, chain = fingerprint_of(entry), chain_of(entry)
  local packed = cmsgpack.pack({host_name, priority, entry})
  if call('HSETNX', prefix .. 'blocked', fingerprint, packed) == 0 then
    counts.waiting = counts.waiting - 1
    counts.dropped = counts.dropped + 1
    return
  end
  call('ZADD', prefix .. 'chain:' .. chain, whole(score), fingerprint)
  touch_chain(chain)
end

-- Note that a task has ended: if it is of a chain, the chain goes on.
local function leave_chain(entry)
  local chain = chain_of(entry)
  if chain then
    call('HDEL', prefix .. 'chains', chain)
    touch_chain(chain)
  end
end

-- Let go the next task of each chain that was touched, unless one of it is under way.
local function advance_chains()
  for _, chain in ipairs(touched) do
    local waiting = prefix .. 'chain:' .. chain
    local first = call('ZRANGE', waiting, 0, 0)[1]
    if first and call('HSETNX', prefix .. 'chains', chain, first) == 1 then
      local packed = call('HGET', prefix .. 'blocked', first)
      local host_name, priority, entry = values_of(packed)
      call('ZREM', waiting, first)
      call('HDEL', prefix .. 'blocked', first)
      counts.waiting = counts.waiting - 1 -- It was counted before, and enqueue counts it again.
      enqueue('RPUSH', host_named(host_name), priority, entry)
    elseif not first and rules.cookies == 1 and call('HEXISTS', prefix .. 'chains', chain) == 0 then
      call('HDEL', prefix .. 'jars', chain) -- No task of the chain is left.
    end
  end
  touched = {}
end

-- Store the cookies of a task's chain: JSON, or an empty text if there are none.
local function keep_jar(entry, jar)
  local chain = chain_of(entry)
  if chain and jar ~= '' then
    call('HSET', prefix .. 'jars', chain, jar)
  elseif chain then
    call('HDEL', prefix .. 'jars', chain)
  end
end

-- Add the cookies of chains to the entries that are handed out: {entry, jar} replaces the entry.
local function add_jars(granted)
  for _, told in ipairs(granted) do
    for i = 7, #told, 2 do
      local chain = chain_of(told[i])
      local jar = chain and call('HGET', prefix .. 'jars', chain)
      if jar then
        told[i] = {told[i], jar}
      end
    end
  end
end
