-- Hands out tasks in a crawl with a carrier. Needs leasing.lua, carried.lua.

do

local plain_take, plain_next_moment, plain_serve_suspect = take, next_moment, serve_suspect
local plain_told_shares = told_shares

-- Note whether a window is low, so that its blocks are fetched, or empty. Returns what is left.
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

-- Make the tail the window, when nothing is outside. Returns whether there was a tail.
local function move_tail(host, priority, key)
  local tail = prefix .. 't:' .. priority .. ':' .. host.name
  return call('EXISTS', tail) == 1 and call('RENAME', tail, key)
end

-- As without a carrier, but an empty window does not end its priority if it has blocks outside.
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

-- As without a carrier, but tasks on their way count as something else to do, unless they have been
-- on their way for long.
function serve_suspect()
  local since = carried.dry_since()
  return not (since and now - since < POLICY.on_the_way) and plain_serve_suspect()
end

-- The shares, and the number of dry hosts, if any: an empty text stands in place of the host.
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
