-- The workers that share a host, and how much of its room each of them has. Needs step.lua.
--
-- ID:shares  hash  host -> packed {shared leases that are not finished, worker, share, until, ...},
--                  in the order of the workers' names. A share is void after its `until`
--
-- A host is here only if workers want more of it than it has room for. Most crawls have no such
-- host: so a step asks at most once whether there are any, and only if it has to know.

local shared, changed, are_any = {}, {}, nil

-- Remove the shares that are void by now.
local function drop_void(name, record)
  local last = 1
  for i = 2, #record, 3 do
    if record[i + 2] > now then
      record[last + 1], record[last + 2], record[last + 3] = record[i], record[i + 1], record[i + 2]
      last = last + 3
    end
  end
  for i = #record, last + 1, -1 do
    record[i], changed[name] = nil, true
  end
end

-- Read the records of hosts that will be needed, all at once.
local function read_shares(wanted)
  if are_any == nil then
    are_any = call('EXISTS', prefix .. 'shares') == 1
  end
  if not are_any then
    return
  end
  for i, packed in ipairs(ask_many('HMGET', prefix .. 'shares', wanted)) do
    local name = wanted[i]
    if shared[name] == nil then
      shared[name] = packed and cmsgpack.unpack(packed)
      if packed then
        drop_void(name, shared[name])
      end
    end
  end
end

-- The record of a host, or nothing if it is not shared.
local function shares_of(name)
  if shared[name] == nil and are_any ~= false then
    read_shares({name})
  end
  return shared[name]
end

-- Add to the number of shared leases of a host that are not finished.
local function note_shared(name, change)
  local record = shares_of(name)
  if record then
    record[1] = math.max(record[1] + change, 0)
    changed[name] = true
  end
end

-- How much of a host's room the shares take, and when the first of them becomes void.
local function taken_by_shares(name)
  local sum, first_void = 0, math.huge
  local record = shares_of(name) or {}
  for i = 2, #record, 3 do
    sum = sum + record[i + 1]
    first_void = math.min(first_void, record[i + 2])
  end
  return sum, first_void
end

-- Prolong a worker's share of a host by a lease time from now on, unless it is void: whether a void
-- share was removed yet is chance. If no worker is named, prolong all shares, even void ones: the
-- server was away, and their room was not given to others yet, because that removes void shares.
local function prolong_shares(name, worker)
  local packed = call('HGET', prefix .. 'shares', name)
  local record = packed and cmsgpack.unpack(packed) or {}
  for i = 2, #record, 3 do
    if record[i + 1] > 0 and (not worker or record[i] == worker and record[i + 2] > now) then
      record[i + 2] = math.max(record[i + 2], now + rules.lease)
    end
  end
  if packed then
    call('HSET', prefix .. 'shares', name, cmsgpack.pack(record))
  end
end

-- The names of all hosts that are shared.
local function shared_hosts()
  local found, all = {}, call('HGETALL', prefix .. 'shares')
  for i = 1, #all, 2 do
    found[#found + 1] = all[i]
  end
  return found
end

-- Remove the share of a worker that is gone. Returns whether it took part in sharing the host.
local function strike_share(name, worker)
  local record = shares_of(name)
  for i = 2, #record, 3 do
    if record[i] == worker then
      for _ = 1, 3 do
        table.remove(record, i)
      end
      changed[name] = true
      return true
    end
  end
  return false
end

-- Write the records back. A host that no worker shares any more loses its record.
local function save_shares()
  local rows, removed = {}, {}
  for name in pairs(changed) do
    local record = shared[name]
    if #record == 1 and record[1] == 0 then
      shared[name] = false
      removed[#removed + 1] = name
    else
      rows[#rows + 1] = name
      rows[#rows + 1] = cmsgpack.pack(record)
    end
  end
  changed = {}
  call_many('HDEL', prefix .. 'shares', removed)
  call_many('HSET', prefix .. 'shares', rows)
end
