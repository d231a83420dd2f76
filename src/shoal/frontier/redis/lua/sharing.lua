-- Divides a host's room among the workers that want it: the decisions of core/sharing.py, here
-- where they can be atomic. Needs step.lua, shares.lua, hosts.lua.

-- The share of a host's room for the worker with this index, from 0 on, if all want some of it.
local function fair_share(room, workers, index)
  local turn = math.floor(now / POLICY.turn)
  local has_more = (index + turn) % workers < room % workers
  return math.floor(room / workers) + (has_more and 1 or 0)
end

-- The position of a worker in a host's record, or the one it would have, and whether it is there.
local function place_of(record, worker)
  local place = 2
  for i = 2, #record, 3 do
    if record[i] == worker then
      return i, true
    end
    if record[i] < worker then
      place = i + 3
    end
  end
  return place, false
end

-- Whether any worker takes part in sharing a host. Then all workers that want something of it must:
-- otherwise their plain leases could keep that one out for ever.
local function is_shared_by_any(name)
  local record = shares_of(name)
  return record and #record > 1
end

-- Set the share of the worker at a position. A worker with a share of 0 that wants more takes part
-- for a while; otherwise it is removed.
local function put_share(record, place, worker, counted, wants)
  local is_there = record[place] == worker
  if counted > 0 or wants then
    for _ = 1, is_there and 0 or 3 do
      table.insert(record, place, 0)
    end
    record[place], record[place + 1] = worker, counted
    record[place + 2] = now + (counted > 0 and rules.lease or POLICY.want)
  elseif is_there then
    for _ = 1, 3 do
      table.remove(record, place)
    end
  end
end

-- Divide a host's room anew, for a worker with `in_flight` requests there. Returns how many it may
-- have in flight from now on. Those that are in flight take room until they are answered.
local function divide(host, worker, in_flight, wants)
  local record, told = shares_of(host.name) or {0}, 0
  local place, is_there = place_of(record, worker)
  wants = wants and is_shareable(host)
  if wants then
    local room = limit_of(host)
    local others = taken_by_shares(host.name) - (is_there and record[place + 1] or 0)
    local workers = (#record - 1) / 3 + (is_there and 0 or 1)
    local target = fair_share(room, workers, (place - 2) / 3)
    told = math.max(math.min(target, room - plain_of(host) - others), 0)
  end
  put_share(record, place, worker, math.max(told, in_flight), wants)
  shared[host.name], changed[host.name] = record, true
  return told
end
