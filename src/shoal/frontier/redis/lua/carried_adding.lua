-- Queues tasks in a crawl with a carrier. Needs adding.lua, carried.lua.

do

local plain_push_all = push_all

-- The entries, from `first` on, that fit into a block. Larger ones stay here, in the window.
local function travelling(key, entries, first)
  local found, large = {}, {}
  for i = first, #entries do
    local list = #entries[i] > rules.block_bytes and large or found
    list[#list + 1] = entries[i]
  end
  call_many('RPUSH', key, large)
  return found
end

-- Queue entries behind the window, which is full or has tasks behind it already: append them to the
-- tail, and send that out in blocks.
local function push_behind(host, priority, entries)
  local key = prefix .. 't:' .. priority .. ':' .. host.name
  local length = call('LLEN', key)
  if length + #entries >= rules.block then
    local all = length > 0 and call('LPOP', key, length) or {}
    for _, entry in ipairs(entries) do
      all[#all + 1] = entry
    end
    local first, rest = carried.send_out(host, priority, all), {}
    for i = first, #all do
      rest[#rest + 1] = all[i]
    end
    entries = rest
  end
  call_many('RPUSH', key, entries)
end

function push_all(host_name, priority, entries)
  if not rules.window or host_name:find(' ', 1, true) then
    return plain_push_all(host_name, priority, entries) -- Tasks of lanes stay in Redis.
  end
  local host = host_named(host_name)
  local window = prefix .. 'q:' .. priority .. ':' .. host_name
  local room = 0
  if
    carried.blocks(host_name, priority) == 0
    and call('EXISTS', prefix .. 't:' .. priority .. ':' .. host_name) == 0
  then
    room = math.max(carried.window(host) - call('LLEN', window), 0)
  end
  if #entries <= room then
    return plain_push_all(host_name, priority, entries)
  end
  local front = {}
  for i = 1, room do
    front[i] = entries[i]
  end
  call_many('RPUSH', window, front)
  note_priority(host, priority)
  host.waiting = host.waiting + #entries
  push_behind(host, priority, travelling(window, entries, room + 1))
end

end
