-- Gives tasks of lanes to a worker, with their exits. Needs leasing.lua, lanes.lua, lending.lua.
--
-- In this form of lease.lua, ARGV[6] is packed {what the worker has of hosts, the pools whose exits
-- it knows, how many tasks with exits it can take, a random number}.

-- The state of serving lanes: the pools that the worker knows, how many tasks it can take, how many
-- it was given, whether there are tasks for other workers only, and which pools are held up. It has
-- functions, too; libraries that follow declare some of them again, for tasks with accounts.
local serving = {has_pools = {}, slots = 0, count = 0, is_refused = false, known_held_up = {}}

do

local are_blocked = nil

if #has > 0 then
  local asked = has
  has, serving.slots = asked[1], asked[3]
  math.randomseed(math.floor(asked[4] * 2 ^ 31))
  for _, name in ipairs(asked[2]) do
    serving.has_pools[name] = true
  end
end

-- The first tasks of a lane, at most `wanted`. They stay in their queues.
function serving.first_tasks(lane, wanted)
  local tasks, number = {}, 1
  local best = best_priority(lane)
  while best and #tasks < wanted do
    local key = prefix .. 'q:' .. best .. ':' .. lane.name
    local entries = call('LRANGE', key, 0, wanted - #tasks - 1)
    for i, entry in ipairs(entries) do
      tasks[#tasks + 1] = {key = key, priority = best, entry = entry, is_first = i == 1}
    end
    if #entries == 0 then
      table.remove(lane.priorities, number) -- Its queue is empty.
    else
      number = number + 1
    end
    best = number == 1 and best_priority(lane) or lane.priorities[number]
  end
  return tasks
end

-- Whether any tasks of the crawl were blocked. In most crawls none were.
function serving.are_any_blocked()
  if are_blocked == nil then
    are_blocked = call('EXISTS', prefix .. 'blocks') == 1
  end
  return are_blocked
end

function serving.read_blocks(tasks)
  local fingerprints = {}
  for _, task in ipairs(tasks) do
    task.blocks = {0}
  end
  if not serving.are_any_blocked() then
    return
  end
  for i, task in ipairs(tasks) do
    fingerprints[i] = fingerprint_of(task.entry)
  end
  for i, packed in ipairs(ask_many('HMGET', prefix .. 'blocks', fingerprints)) do
    tasks[i].blocks = packed and cmsgpack.unpack(packed) or tasks[i].blocks
  end
end

function serving.remove_task(task)
  if task.is_first then
    call('LPOP', task.key)
  else
    call('LREM', task.key, 1, task.stored or task.entry)
  end
end

-- Lend a task its exit, or none if it may leave directly. Returns what its lease stores about the
-- exit, what the worker is told, whether the request must leave in its turn, and what the lease
-- stores about an account.
function serving.lend(lane, task, exit, pool)
  local blocks = task.blocks
  local lent = {'', 0, lane.pool, exits.now, blocks[1]}
  if exit then
    lent = exits.lend(exit, lane.host.name, pool, blocks[1])
  end
  local told = {lent[1], lent[2], lent[3], blocks[1], #blocks - 1}
  return lent, told, exit and (pool.interval > 0 or pool.pair_interval > 0)
end

-- Give the worker a task of a lane, which leaves by this exit, or directly if there is none.
function serving.grant(lane, task, exit, pool)
  local host = lane.host
  serving.remove_task(task)
  local interval = interval_of(host)
  local robots_at = whole(knows_robots(host) and host.robots_at or 0)
  local lent, told, is_paced, account = serving.lend(lane, task, exit, pool)
  is_paced = is_paced or interval > 0
  lane.waiting, lane.leased = lane.waiting - 1, lane.leased + 1
  host.leased, host.next = host.leased + 1, now + interval
  counts.waiting, counts.leased = counts.waiting - 1, counts.leased + 1
  note_holding(worker, 1)
  count, serving.count = count + 1, serving.count + 1
  local own, crowded = token .. count, room_left(host) == 0 and 1 or 0
  local value = {lane.name, task.priority, task.entry, worker, now, host.next, false, lent, account}
  held[2 * count - 1], held[2 * count] = own, cmsgpack.pack(value)
  due[2 * count - 1], due[2 * count] = whole(now + rules.lease), own
  granted[#granted + 1] =
    {lane.name, robots_at, is_paced and 1 or 0, crowded, told, task.priority, task.entry}
end

end
