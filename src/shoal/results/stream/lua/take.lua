#!lua flags=allow-oom
-- Hand entries to a deliverer: first those that a dead deliverer held, then new ones.
--
-- KEYS[1]  the stream
-- ARGV[1]  the group of all deliverers
-- ARGV[2]  this deliverer
-- ARGV[3]  idle milliseconds of an entry after which its deliverer counts as dead
-- ARGV[4]  the maximum number of entries
-- ARGV[5]  the maximum number of bytes; the last entry may exceed it
-- returns  the number of entries in the stream; and those handed out, each {id, {name, value, …}}
--
-- Atomic, because only a script can look at an entry's size and take it in the same step. It also
-- works when the server is out of memory: taking entries is how memory is freed.

local key, group, deliverer = KEYS[1], ARGV[1], ARGV[2]
local idle_ms, most, most_bytes = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local taken, bytes = {}, 0

local function has_group()
  if redis.call('EXISTS', key) == 0 then
    return false
  end
  for _, found in ipairs(redis.call('XINFO', 'GROUPS', key)) do
    if found[2] == group then
      return true
    end
  end
  return false
end

local function is_full()
  return #taken >= most or bytes >= most_bytes
end

local function take(entries)
  for _, entry in ipairs(entries) do
    taken[#taken + 1] = entry
    for _, text in ipairs(entry[2]) do
      bytes = bytes + #text
    end
  end
end

local function take_left()
  local from = '0-0'
  repeat
    local answer = redis.call('XAUTOCLAIM', key, group, deliverer, idle_ms, from, 'COUNT', 1)
    from = answer[1]
    take(answer[2])
  until from == '0-0' or is_full()
end

local function take_new()
  while not is_full() do
    local answer =
      redis.call('XREADGROUP', 'GROUP', group, deliverer, 'COUNT', 1, 'STREAMS', key, '>')
    if not answer then
      return
    end
    take(answer[1][2])
  end
end

-- Whether entries are in the stream that are neither new nor held. Delivered entries are deleted, so
-- somebody has deleted a deliverer (XGROUP DELCONSUMER) or moved the group.
local function has_lost_sight()
  return #taken == 0 and redis.call('XLEN', key) > 0 and redis.call('XPENDING', key, group)[1] == 0
end

if not has_group() then
  redis.call('XGROUP', 'CREATE', key, group, '0', 'MKSTREAM')
end
take_left()
take_new()
if has_lost_sight() then
  redis.call('XGROUP', 'SETID', key, group, '0')
  take_new()
end
return {redis.call('XLEN', key), taken}
