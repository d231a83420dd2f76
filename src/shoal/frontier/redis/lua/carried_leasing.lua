-- Handing out where tasks travel. Needs leasing.lua, carried.lua.

do

local plain_take, plain_next_moment, plain_serve_suspect = take, next_moment, serve_suspect
local plain_told_shares = told_shares

-- What a window has left decides whether its blocks are sent for.
local function look_at_window(host, priority, key)
  local left = call('LLEN', key)
  if left < carried.low_mark(host) then
    call('SADD', prefix .. 'low', priority .. ':' .. host.name)
  end
  if left == 0 then
    carried.note_dry(host, priority)
  end
  return left
end

-- Nothing is outside: the tail is next. Returns whether there was one.
local function move_tail(host, priority, key)
  local tail = prefix .. 't:' .. priority .. ':' .. host.name
  return call('EXISTS', tail) == 1 and call('RENAME', tail, key)
end

-- As without: but a window that is empty is not the end of its priority if blocks of it are outside.
function take(host, count)
  if not rules.window then
    return plain_take(host, count)
  end
  local entries, priorities = {}, {}
  local best = best_priority(host)
  while best and #entries < count do
    local key = prefix .. 'q:' .. best .. ':' .. host.name
    local wanted = count - #entries
    local popped = call('LPOP', key, wanted) or {}
    for _, entry in ipairs(popped) do
      entries[#entries + 1] = entry
      priorities[#entries] = best
    end
    if carried.blocks(host.name, best) > 0 then
      if look_at_window(host, best, key) == 0 then
        break
      end
    elseif #popped < wanted and not move_tail(host, best, key) then
      table.remove(host.priorities, 1)
    end
    best = best_priority(host)
  end
  return entries, priorities
end

-- Tasks on their way are something else to do, unless they have been for long.
function serve_suspect()
  local since = carried.dry_since()
  return not (since and now - since < POLICY.on_the_way) and plain_serve_suspect()
end

-- Beside the shares, how many hosts are dry, if any are: in the place of a host's name stands nothing.
function told_shares()
  local told = plain_told_shares()
  local dry = limit > 0 and call('ZCARD', prefix .. 'dry') or 0
  if dry > 0 then
    told[#told + 1] = DRY
    told[#told + 1] = dry
  end
  return told
end

function next_moment(at_of)
  local wait = plain_next_moment(at_of)
  local since = limit > 0 and pages_left() > 0 and carried.dry_since()
  if not since then
    return wait
  end
  local own = now - since < POLICY.on_the_way and POLICY.carry_wait or POLICY.carry_wait_long
  return wait < 0 and own or math.min(wait, own)
end

end
