#!lua flags=allow-oom
-- Take in blocks that came back: their entries wait here again. Runs also when the server is out of
-- memory, because tasks that cannot come in cannot be worked off.
--
-- uses     step pace shares hosts seen queue chains adding
-- ARGV[2]  packed {{host, priority, tasks, id of its crawl, whether to send it out again}, ...}
-- ARGV...  the ids of the blocks; then the entries of all blocks
-- returns  {state, life, for each block 1 if it was outside; 0 if that was not known, or if
--           fingerprints were forgotten since: then its entries were added like new ones; -1 if it
--           is of another crawl, or this one was cancelled}
--
-- Atomic, because if two clients bring the same block, the entries of one must all be duplicates.

if not open_own_crawl() then
  return unknown()
end
local blocks, unasked = cmsgpack.unpack(ARGV[2]), {}
local answer = {state, life()}
local argument = 3 + #blocks
local repaired = tonumber(call('GET', prefix .. 'repaired') or 0)

-- The stored values of a block, if it is outside.
local function known(block, block_id)
  local packed = call('HGET', prefix .. 'carried', block_id)
  local values = packed and cmsgpack.unpack(packed)
  local is_it = values and values[1] == block[1] and values[2] == block[2] and values[3] == block[3]
  return is_it and values
end

local function bring_in(block, values, first)
  local host, entries = host_named(block[1]), {}
  for i = 1, block[3] do
    entries[i] = ARGV[first + i - 1]
  end
  carried.strike(block[1], block[2], values[4])
  local length = call('LLEN', prefix .. 'q:' .. block[2] .. ':' .. block[1])
  local is_unwanted = values[4] == 0 and length > carried.window(host) + POLICY.deep * rules.block
  if block[5] or is_unwanted then -- It is old, or other blocks of its lane were wanted.
    carried.send_out(host, block[2], entries, true)
  else
    carried.take_in(host, block[2], entries)
  end
end

for i, block in ipairs(blocks) do
  local block_id, first = ARGV[2 + i], argument
  argument = argument + block[3]
  local values = state ~= 'cancelled' and block[4] == id and known(block, block_id)
  if state == 'cancelled' or block[4] ~= id then
    answer[2 + i] = -1
  elseif values and values[5] > repaired then
    call('HDEL', prefix .. 'carried', block_id)
    bring_in(block, values, first)
    answer[2 + i] = 1
  else
    if values then
      counts.added = counts.added - carried.write_off(block_id, values)
    end
    unasked[#unasked + 1] = {block[1], block[2], first, argument - 1}
    answer[2 + i] = 0
  end
end
local duplicates = counts.duplicates
if #unasked > 0 and add_groups(unasked) > 0 and state == 'finished' then
  set_state('running')
end
counts.duplicates = duplicates -- These are not links that were found again.
advance_chains()
save_hosts()
close_crawl()
return answer
