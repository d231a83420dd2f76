-- Lanes: the tasks of a host that leave by exits of one pool. Needs step.lua, hosts.lua, queue.lua,
-- exits.lua.
--
-- A lane's name is POOL HOST; no host has a space in its name. A lane is stored like a host: its
-- numbers in ID:hosts, its queues in ID:q:PRIORITY:POOL HOST, and a task that would name its host
-- names the lane instead. The record of its host has the turns and the room. The `next` of a lane
-- is the moment at which it is looked at again.
--
-- The pool of a task with a session is a group of accounts, @shop, or one account of it,
-- @shop#alice. The lanes of a group and of its accounts are looked at together, because there may
-- be many accounts.
--
-- ID:lanes       hash  lane -> packed values, see exit_forms.py; no entry for the initial ones
-- ID:ready:POOL  zset  lanes with work, by the moment they are worth a look; those of accounts are
--                      with their group's
-- ID:lane_load   zset  every lane, by the number of its tasks that wait, roughly
-- ID:pools       set   the pools of the crawl's lanes
-- ID:versions    hash  pool -> the versions of its rules and exits, and of the pools above it, at
--                      the last look at its lanes
-- ID:blocks      hash  fingerprint -> packed {blocks, exit, ...} of tasks that were blocked: how
--                      often, and with which exits
-- ID:expired     hash  fingerprint -> how often a task met an expired login

local lanes = {known = {}, names = {}}

do

open_plain_crawl = open_own_crawl -- This is the other form of the script.

local plain_host_named, plain_read_hosts, plain_save_hosts = host_named, read_hosts, save_hosts

-- The pool whose rules apply: for an account, its group.
function lanes.group_of(pool_name)
  return pool_name:match('^(@[^#]*)#') or pool_name
end

-- The pools whose exits a lane's tasks may use: its own, and those to which it may go up.
function lanes.tiers(lane)
  return exit_policy.tiers(lane.pool, exits.pool)
end

local function unpack_lane(name, packed)
  local lane = unpack_place(name, packed)
  local pool, host_name = name:match('^(.*) (.-)$')
  lane.pool, lane.host, lane.packed = pool, plain_host_named(host_name), packed
  lane.group = lanes.group_of(pool)
  lane.is_new = not packed
  lanes.known[name] = lane
  lanes.names[#lanes.names + 1] = name
  return lane
end

-- Read lanes that will be needed, and their hosts, all at once.
function lanes.read(wanted)
  local host_names = {}
  for i, name in ipairs(wanted) do
    host_names[i] = name:match('[^ ]*$')
  end
  plain_read_hosts(host_names)
  for i, packed in ipairs(ask_many('HMGET', prefix .. 'hosts', wanted)) do
    if not lanes.known[wanted[i]] then
      unpack_lane(wanted[i], packed)
    end
  end
end

function lanes.named(name)
  if not lanes.known[name] then
    lanes.read({name})
  end
  return lanes.known[name]
end

-- Read the states of lanes, which decide how they are served: only when they are needed, and all at
-- once.
function lanes.read_states(wanted)
  for i, packed in ipairs(ask_many('HMGET', prefix .. 'lanes', wanted)) do
    local lane = lanes.known[wanted[i]]
    lane.state = lane.state or lane_of(packed and cmsgpack.unpack(packed) or NEW_LANE)
  end
end

function lanes.state(lane)
  if not lane.state then
    lanes.read_states({lane.name})
  end
  return lane.state
end

-- The host or lane of a name.
function host_named(name)
  return name:find(' ', 1, true) and lanes.named(name) or plain_host_named(name)
end

function read_hosts(wanted)
  local host_names, lane_names = {}, {}
  for _, name in ipairs(wanted) do
    local list = name:find(' ', 1, true) and lane_names or host_names
    list[#list + 1] = name
  end
  plain_read_hosts(host_names)
  lanes.read(lane_names)
end

-- Note a new lane. A crawl with a lane is one with pools, whatever its rules say by now.
local function note_new_lane(lane)
  call('SADD', prefix .. 'pools', lane.pool, lane.group)
  call('SADD', EXITS_BASE .. 'crawls', prefix)
  if rules.pools ~= 1 then
    rules.pools = 1
    call('HSET', KEYS[1], 'numbers', cmsgpack.pack(rules))
  end
end

local function save_lanes()
  local rows, states, load = {}, {}, {}
  for _, name in ipairs(lanes.names) do
    local lane = lanes.known[name]
    local heap = prefix .. 'ready:' .. lane.group
    local at = lane.waiting > lane.suspects and lane.next or -1
    if at < 0 and lane.ready >= 0 then
      call('ZREM', heap, name)
    elseif at ~= lane.ready then
      call('ZADD', heap, whole(at), name)
    end
    lane.ready = at
    if lane.load < 0 or is_off(lane.load, lane.waiting) then
      note_score(load, lane, 'load', lane.waiting)
    end
    if lane.is_new then
      note_new_lane(lane)
      lane.is_new = false
    end
    keep_few_priorities(lane)
    local packed = pack_host(lane)
    if packed ~= lane.packed then
      lane.packed = packed
      rows[#rows + 1] = name
      rows[#rows + 1] = packed
    end
    if lane.is_changed then
      lane.is_changed = nil
      states[#states + 1] = name
      states[#states + 1] = cmsgpack.pack(lane_values(lane.state))
    end
  end
  call_many('HSET', prefix .. 'hosts', rows)
  call_many('HSET', prefix .. 'lanes', states)
  call_many('ZADD', prefix .. 'lane_load', load)
end

function save_hosts()
  save_lanes()
  plain_save_hosts()
  exits.save()
end

-- How often a task was blocked, and with which exits: {blocks, exit, ...}.
function lanes.blocks_of(fingerprint)
  local packed = call('HGET', prefix .. 'blocks', fingerprint)
  return packed and cmsgpack.unpack(packed) or {0}
end

function lanes.note_block(fingerprint, exit_id)
  local record = lanes.blocks_of(fingerprint)
  record[1] = math.min(record[1] + 1, POLICY.max_blocks)
  local is_known = exit_id == ''
  for i = 2, #record do
    is_known = is_known or record[i] == exit_id
  end
  if not is_known then
    record[#record + 1] = exit_id
  end
  call('HSET', prefix .. 'blocks', fingerprint, cmsgpack.pack(record))
end

-- Forget how often a task was blocked, or met an expired login, because it has ended.
function lanes.forget_task(fingerprint)
  call('HDEL', prefix .. 'blocks', fingerprint)
  call('HDEL', prefix .. 'expired', fingerprint)
end

-- Look at a lane soon, unless it is starved: it may have waited for the lease that has just ended.
function lanes.look_soon(lane)
  if lanes.state(lane).starved_at == 0 then
    lane.next = math.min(lane.next, math.max(lane.host.next, now))
  end
end

-- Free the exit, and the room at the host, of a lease of a lane that has ended. Returns the lane,
-- the exit and the pair.
function lanes.let_go(task, is_lost)
  local lane = lanes.named(task[1])
  lane.host.leased = lane.host.leased - 1
  return lane, exits.give_back(task, lane.host.name, is_lost)
end

end
