-- How a host's room is divided among the workers that want it: core/sharing.py's decisions, where they
-- can be made atomically. Needs step.lua, shares.lua, hosts.lua.

-- What the worker of this index, from 0 on, gets of a host's room, if all of them want some.
local function fair_share(room, workers, index)
  local turn = math.floor(now / POLICY.turn)
  local has_more = (index + turn) % workers < room % workers
  return math.floor(room / workers) + (has_more and 1 or 0)
end

-- Where a worker is in a host's record, or would be, and whether it is there.
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

-- Whether anybody takes part in sharing a host. Then all who want something of it do: else their leases
-- could keep that one out for ever.
local function is_shared_by_any(name)
  local record = shares_of(name)
  return record and #record > 1
end

-- What the worker at a place has of a host from now on. Without anything, it takes part for a while if it
-- wants to.
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

-- Divide a host's room anew, for a worker that has so many requests in flight there. Returns how many
-- it may have from now on. Those that are in flight count until they are answered.
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
