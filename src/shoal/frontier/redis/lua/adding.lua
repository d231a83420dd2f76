-- Queueing what was never seen. Needs step.lua, hosts.lua, seen.lua, chains.lua.
--
-- Entries are arguments of the script, one after the other. A group {host, priority, count} says
-- what the next so many of them are: cmsgpack does not take bytes, and so nothing is copied. An entry of
-- a chain is a group of its own.

-- Turn groups into {host, priority, first, last}, from an argument on. Returns the next argument.
local function place_groups(groups, argument)
  for _, group in ipairs(groups) do
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

-- Queue those entries of the groups that are new, each once.
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

-- Of the same task twice, the first counts. Returns how many were new, and how many were not.
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
  if #fresh > 0 then
    remember(fresh)
    push_new(groups, known)
  end
  counts.added = counts.added + #fresh
  counts.waiting = counts.waiting + #fresh
  counts.duplicates = counts.duplicates + total - #fresh
  return #fresh, total - #fresh
end
