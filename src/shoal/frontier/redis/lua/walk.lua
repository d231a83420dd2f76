#!lua flags=no-writes
-- List some of the tasks of a host that are in one place other than its queue.
--
-- uses     step
-- ARGV[2]  the place: held, delayed, suspects, blocked or dead
-- ARGV[3]  the cursor: 0 at first, then what the last call returned, until that is 0 again
-- ARGV[4]  the host
-- ARGV[5]  roughly how many tasks to look at
-- returns  {cursor, {due, values of the packed form, ...}, ...}; for a dead task, `due` is when it
--          died
--
-- Atomic, because a lease and the moment of its end are in two keys.

if not open_crawl() then
  return unknown()
end
local where, cursor, host, most = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local key = prefix .. where
local answer = {'0'}

local function look_at(due, packed)
  local values = cmsgpack.unpack(packed)
  if values[1]:match('[^ ]*$') == host then -- The host, or a lane of it, see lanes.lua.
    answer[#answer + 1] = {due, unpack(values, 1, 6)}
  end
end

if where == 'suspects' then
  local last = cursor + most - 1
  for _, packed in ipairs(call('LRANGE', key, cursor, last)) do
    look_at('0', packed)
  end
  answer[1] = last + 1 < call('LLEN', key) and whole(last + 1) or '0'
  return answer
end
local scan = where == 'delayed' and 'ZSCAN' or 'HSCAN'
local scanned = call(scan, key, cursor, 'COUNT', most)
answer[1] = scanned[1]
for i = 1, #scanned[2], 2 do
  local name, value = scanned[2][i], scanned[2][i + 1]
  if where == 'delayed' then
    look_at(by_clock(value), name)
  elseif where == 'dead' then
    look_at(call('ZSCORE', prefix .. 'died', name), value)
  else
    local due = where == 'held' and call('ZSCORE', prefix .. 'due', name)
    look_at(due and by_clock(due) or '0', value)
  end
end
return answer
