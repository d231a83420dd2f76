-- Queues tasks that were never seen. Needs step.lua, hosts.lua, seen.lua, chains.lua.
--
-- Entries are arguments of the script, one after the other: cmsgpack does not take bytes, and this
-- way nothing is copied. A group {host, priority, count, shape} describes the next `count` entries;
-- it has a shape only if a limit applies to links. Each entry of a chain is a group of its own.

-- ID:alike:HOST  hash  shape of addresses -> how many such links were queued; '' -> all of the
--                      host's links. Shapes seen only once make room for others.
-- ID:kept_out    hash  host, a space, shape -> how many links were kept out by the limit for that
--                      shape, or, if the shape is empty, by the limit for the host

-- Turn groups into {host, priority, first, last}: the arguments of their entries, which begin at
-- `argument`. Returns the argument after them.
local function place_groups(groups, argument)
  for _, group in ipairs(groups) do
    group.shape = group[4]
    group[4] = argument + group[3] - 1
    group[3] = argument
    argument = group[4] + 1
  end
  return argument
end

local function push_all(host_name, priority, entries)
  local key = prefix .. 'q:' .. priority .. ':' .. host_name
  call_many('RPUSH', key, entries)
  local host = host_named(host_name)
  note_priority(host, priority)
  host.waiting = host.waiting + #entries
end

-- Queue the entries of the groups that are new, each once.
local function push_new(groups, known)
  local wanted, pushes = {}, {}
  for _, group in ipairs(groups) do
    local entries = {}
    for i = group[3], group[4] do
      local fingerprint = ARGV[i]:sub(1, 8)
      if known[fingerprint] == 'new' then
        known[fingerprint] = 'queued'
        entries[#entries + 1] = ARGV[i]
      end
    end
    if #entries > 0 then
      wanted[#wanted + 1] = group[1]
      pushes[#pushes + 1] = {group[1], group[2], entries}
    end
  end
  read_hosts(wanted)
  for _, push in ipairs(pushes) do
    if chain_of(push[3][1]) then
      join_chain(push[1], push[2], push[3][1])
    else
      push_all(push[1], push[2], push[3])
    end
  end
end

local is_cleared = {}

-- Whether one more shape of a host may be kept. Room is made only once in a step, because a page
-- may have thousands of shapes.
local function has_room_for_shape(key)
  if call('HLEN', key) <= POLICY.most_shapes then -- One field is for all links of the host.
    return true
  end
  if is_cleared[key] then
    return false
  end
  is_cleared[key] = true
  local kept, once = call('HGETALL', key), {}
  for i = 1, #kept, 2 do
    if kept[i] ~= '' and kept[i + 1] == '1' then
      once[#once + 1] = kept[i]
    end
  end
  call_many('HDEL', key, once)
  return #once > 0
end

-- How many of `count` new links of a host, with addresses of one shape, may be queued. Counts them.
local function room_for_alike(host_name, shape, count)
  local key = prefix .. 'alike:' .. host_name
  local stored = call('HMGET', key, '', shape)
  local of_host = (rules.most_of_host or math.huge) - (tonumber(stored[1]) or 0)
  local of_shape = (rules.most_alike or math.huge) - (tonumber(stored[2]) or 0)
  local room = math.max(math.min(of_host, of_shape, count), 0)
  if room > 0 then
    call('HINCRBY', key, '', room)
    if shape ~= '' and (stored[2] or has_room_for_shape(key)) then
      call('HINCRBY', key, shape, room)
    end
  end
  if room < count then
    local trap = host_name .. ' ' .. (of_host <= of_shape and '' or shape)
    local traps = prefix .. 'kept_out'
    if call('HLEN', traps) < POLICY.most_traps or call('HEXISTS', traps, trap) == 1 then
      call('HINCRBY', traps, trap, count - room)
    end
  end
  return room
end

-- The new fingerprints that no limit of the crawl keeps out.
local function within_limits(groups, known, fresh)
  for _, group in ipairs(groups) do
    local alike = {}
    for i = group[3], group.shape and group[4] or 0 do
      local fingerprint = ARGV[i]:sub(1, 8)
      if known[fingerprint] == 'new' then
        known[fingerprint] = 'counted'
        alike[#alike + 1] = fingerprint
      end
    end
    local room = #alike > 0 and room_for_alike(group[1]:match('[^ ]*$'), group.shape, #alike) or 0
    for i = room + 1, #alike do
      known[alike[i]] = 'kept out'
    end
  end
  local wanted = {}
  for _, fingerprint in ipairs(fresh) do
    if known[fingerprint] ~= 'kept out' then
      known[fingerprint] = 'new'
      wanted[#wanted + 1] = fingerprint
    end
  end
  counts.filtered = counts.filtered + #fresh - #wanted
  return wanted
end

-- Queue the new entries of the groups. If a task occurs twice, the first one counts. Returns how
-- many were new, and how many were duplicates.
local function add_groups(groups)
  local fingerprints, known, total = {}, {}, 0
  for _, group in ipairs(groups) do
    total = total + group[4] - group[3] + 1
    for i = group[3], group[4] do
      local fingerprint = ARGV[i]:sub(1, 8)
      if not known[fingerprint] then
        known[fingerprint] = 'asked'
        fingerprints[#fingerprints + 1] = fingerprint
      end
    end
  end
  if total == 0 then
    return 0, 0
  end
  local fresh = {}
  for i, is_seen in ipairs(seen_flags(fingerprints)) do
    if not is_seen then
      fresh[#fresh + 1] = fingerprints[i]
      known[fingerprints[i]] = 'new'
    end
  end
  local duplicates = total - #fresh
  if rules.most_alike or rules.most_of_host then
    fresh = within_limits(groups, known, fresh)
  end
  if #fresh > 0 then
    remember(fresh)
    push_new(groups, known)
  end
  counts.added = counts.added + #fresh
  counts.waiting = counts.waiting + #fresh
  counts.duplicates = counts.duplicates + duplicates
  return #fresh, duplicates
end
