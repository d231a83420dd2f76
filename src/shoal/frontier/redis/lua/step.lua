-- One atomic step on one shard of a crawl: its clock, its hash, its end. Part of every script.
--
-- KEYS[1]  the hash of the shard, shoal:{tag}:crawl. All other keys of the shard share its tag, so
--          they live on the same server: shoal:{tag}:ID:..., where ID is the crawl's own. A crawl
--          that is started over has another ID, so nothing of the old one can get in its way.
-- ARGV[1]  the time in microseconds, or nothing: then it is the server's own clock that counts.
--
-- Times are whole microseconds, which a Lua number holds exactly. POLICY comes from policy.py.

local call = redis.call
local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- The crawl: all fields but `id` and `state` are packed, which saves most of the time it takes to
-- read them. `rules` never change within a step; `counts` are written back at its end.
local COUNTS = {
  'added', 'duplicates', 'filtered', 'waiting', 'delayed', 'leased', 'done', 'dead', 'dropped',
  'retries', 'lost', 'items', 'rejected', 'body_bytes', 'sent', 'blocked',
  'sample_at', 'sample_done', 'earlier_at', 'earlier_done', 'unchanged', 'turns',
}

local state, id, sealed, prefix, rules, counts, tried_before

local function whole(number)
  return string.format('%.0f', number)
end

-- As Stats.tried: what max_pages and the rate count.
local function pages_tried()
  return counts.done + counts.dead
end

-- Read the crawl. False if there is none.
local function open_crawl()
  local stored = call('HMGET', KEYS[1], 'id', 'state', 'sealed', 'numbers', 'counts')
  if not stored[1] then
    return false
  end
  id, state, sealed = stored[1], stored[2], stored[3] == '1'
  prefix = KEYS[1]:sub(1, -6) .. id .. ':'
  rules, counts = cmsgpack.unpack(stored[4]), {}
  local values = stored[5] and cmsgpack.unpack(stored[5]) or {}
  for i, name in ipairs(COUNTS) do
    counts[name] = values[i] or 0
  end
  tried_before = pages_tried()
  return true
end

local function unknown()
  return redis.error_reply('UNKNOWNCRAWL no such crawl')
end

-- How often clients have met a server that did not know the scripts: one that was restarted, or
-- a replica that took over. It may have lost the last moments, so what clients remember is void.
local function restarts()
  return tonumber(call('GET', KEYS[1]:sub(1, -6) .. 'restarts')) or 0
end

local function set_state(new_state)
  state = new_state
  call('HSET', KEYS[1], 'state', state)
  if state == 'finished' or state == 'cancelled' then
    call('HSET', KEYS[1], 'finished_at', whole(now))
  else
    call('HDEL', KEYS[1], 'finished_at')
  end
end

local function pages_left()
  return rules.max_pages == 0 and math.huge or rules.max_pages - pages_tried() - counts.leased
end

-- Whether this shard has nothing left to do, now or later.
local function is_idle()
  if not sealed or counts.leased > 0 then
    return 0
  end
  local full = rules.max_pages > 0 and pages_tried() >= rules.max_pages
  return (full or counts.waiting + counts.delayed == 0) and 1 or 0
end

-- Write the crawl back. The only shard of a crawl ends it here; of several, none knows enough, and
-- whoever called asks them all (crawl.py).
local function close_crawl()
  if pages_tried() > tried_before and now - counts.sample_at >= POLICY.sample_every then
    counts.earlier_at, counts.earlier_done = counts.sample_at, counts.sample_done
    counts.sample_at, counts.sample_done = now, pages_tried()
  end
  local values = {}
  for i, name in ipairs(COUNTS) do
    values[i] = counts[name]
  end
  call('HSET', KEYS[1], 'counts', cmsgpack.pack(values))
  local live = state == 'running' or state == 'paused'
  if live and rules.shards == 1 and is_idle() == 1 then
    set_state('finished')
  end
end
