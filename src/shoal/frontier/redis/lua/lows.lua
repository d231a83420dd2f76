#!lua flags=allow-oom
-- List the windows that need blocks from outside; empty ones come first.
--
-- uses     step pace shares hosts queue
-- ARGV[2]  how many windows to list, at most
-- ARGV[3]  how many tasks a dry window gets beyond those that fill it
-- returns  {state, id, life, blocks in the outbox, blocks outside,
--           {host, priority, blocks in a shared lane, blocks in its own lane, blocks wanted,
--           for how long it has been dry (-1: it is not)}, ...}
--
-- Atomic, because a window may change between the look at it and its removal from the list.

if not open_own_crawl() then
  return unknown()
end
local most, more = tonumber(ARGV[2]), tonumber(ARGV[3])
local outbox, outside = call('LLEN', prefix .. 'outbox'), call('HLEN', prefix .. 'carried')
local dry = call('ZRANGE', prefix .. 'dry', 0, most - 1)
local answer = {state, id, life(), outbox, outside}

local function tell(host, priority)
  local record = carried.of(host.name)
  local is_dry = record and record[1] > 0 and record[2] == priority
  local at = carried.place(record, priority)
  local left = call('LLEN', prefix .. 'q:' .. priority .. ':' .. host.name)
  if not at or left >= carried.low_mark(host) and left > 0 then
    call('SREM', prefix .. 'low', priority .. ':' .. host.name)
    return
  end
  local tasks = carried.window(host) - left + (is_dry and more or 0)
  local blocks = math.min(math.ceil(tasks / rules.block), record[at + 1] + record[at + 2])
  answer[#answer + 1] =
    {host.name, priority, record[at + 1], record[at + 2], blocks, is_dry and now - record[1] or -1}
end

read_hosts(dry)
for _, name in ipairs(dry) do
  tell(host_named(name), carried.of(name)[2])
end
local low = {}
for _, member in ipairs(#dry < most and call('SRANDMEMBER', prefix .. 'low', most - #dry) or {}) do
  local priority, name = member:match('^(-?%d+):(.*)$')
  low[#low + 1] = {name, tonumber(priority)}
end
for _, window in ipairs(low) do
  local record = carried.of(window[1])
  if not (record and record[1] > 0 and record[2] == window[2]) then
    tell(host_named(window[1]), window[2])
  end
end
return answer
