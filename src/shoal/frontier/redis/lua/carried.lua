-- The queues of a crawl with a carrier. The next tasks of a host and priority are in Redis, in the
-- window; the others are outside, in blocks that the carrier keeps. Needs step.lua, hosts.lua,
-- queue.lua.
--
-- ID:q:PRIORITY:HOST  list    the window: entries that are next
-- ID:t:PRIORITY:HOST  list    the tail: entries that came last, fewer than a block
-- ID:away             hash    host -> packed {since when it is dry (0: it is not), in which
--                             priority}, and for each priority that has blocks outside {priority,
--                             blocks in a shared lane, blocks in its own lane, whether further
--                             blocks go to its own}
-- ID:carried          hash    id of a block that is outside -> packed {host, priority, tasks,
--                             whether it is in its own lane, moment}
-- ID:outbox           list    blocks that were not published yet: see send_out
-- ID:low              set     PRIORITY:HOST of windows that are low and have blocks outside
-- ID:dry              zset    hosts whose best window is empty, with blocks of it outside, by the
--                             moment that happened
-- ID:own              set     PRIORITY:HOST of all windows with a lane of their own
-- ID:routes           set     the names of all lanes that were used: see broker/, also for the next
--                             two
-- ID:missing          string  how many tasks should be with the carrier and are not
-- ID:foreign          string  how many blocks the carrier had that are not of this crawl
-- ID:repaired         string  when fingerprints were last removed from those that were seen: see
--                             unsee.lua
--
-- Both lists, and the tasks outside, count as waiting, for the crawl and for the host. A dry host
-- is not ready: its best tasks are on their way, and those of lower priority come after them.

local carried = {away = {}, changed = {}, FIRST = 3, STEP = 4}

do

local plain_ready_at, plain_read_hosts = ready_at, read_hosts
local plain_save_hosts, plain_enqueue = save_hosts, enqueue

function carried.read(wanted)
  if #wanted == 0 or not rules.window then
    return
  end
  for i, packed in ipairs(ask_many('HMGET', prefix .. 'away', wanted)) do
    local name = wanted[i]
    if carried.away[name] == nil then
      carried.away[name] = packed and cmsgpack.unpack(packed)
    end
  end
end

-- The record of a host that has blocks outside, or nothing.
function carried.of(name)
  if carried.away[name] == nil then
    carried.read({name})
  end
  return carried.away[name]
end

-- The index of a priority in a host's record, or nothing.
function carried.place(record, priority)
  for at = carried.FIRST, record and #record or 0, carried.STEP do
    if record[at] == priority then
      return at
    end
  end
end

-- How many blocks of a host and priority are outside.
function carried.blocks(name, priority)
  local record = carried.of(name)
  local at = carried.place(record, priority)
  return at and record[at + 1] + record[at + 2] or 0
end

function carried.window(host)
  return interval_of(host) > 0 and rules.window or rules.window_fast
end

-- The next block is fetched when a window has fewer tasks than this.
function carried.low_mark(host)
  local window = carried.window(host)
  return math.max(math.ceil(window / 2), window - rules.block)
end

-- Note that the best window of a host is empty while it has blocks outside.
function carried.note_dry(host, priority)
  local record = carried.of(host.name)
  if record[1] == 0 then
    record[1], record[2], carried.changed[host.name] = now, priority, true
    call('ZADD', prefix .. 'dry', whole(now), host.name)
  end
end

-- Note that tasks have come into a window: its host may no longer be dry.
local function undry(host, priority)
  local record = carried.of(host.name)
  if record and record[1] > 0 and priority >= record[2] then
    record[1], carried.changed[host.name] = 0, true
    call('ZREM', prefix .. 'dry', host.name)
  end
end

-- The moment at which the last host became dry, or nothing if none is dry.
function carried.dry_since()
  local found = call('ZRANGE', prefix .. 'dry', 0, 0, 'REV', 'WITHSCORES')
  return tonumber(found[2])
end

-- Whether further blocks of a host and priority go to a lane of their own. They get one if enough
-- of them are in the shared lane.
local function has_own_lane(record, at, host, priority)
  if record[at + 3] == 0 and record[at + 1] >= POLICY.own_from and #host.name <= POLICY.own_name then
    local own = prefix .. 'own'
    if call('SCARD', own) < POLICY.most_own then
      call('SADD', own, priority .. ':' .. host.name)
      record[at + 3] = 1
    end
  end
  return record[at + 3] == 1
end

local function note_outside(host, priority)
  local record = carried.of(host.name) or {0, 0}
  carried.away[host.name], carried.changed[host.name] = record, true
  local at = carried.place(record, priority)
  if not at then
    at = #record + 1
    record[at], record[at + 1], record[at + 2] = priority, 0, 0
    record[at + 3] = call('SISMEMBER', prefix .. 'own', priority .. ':' .. host.name)
  end
  local kind = has_own_lane(record, at, host, priority) and 1 or 0
  record[at + 1 + kind] = record[at + 1 + kind] + 1
  return kind
end

-- An id of eight bytes that no other block has, unless it has the same entries. Not a counter,
-- because a server that lost its last moments would give the same ids to other blocks; nor a random
-- number, because scripts always get the same ones.
local function new_id(host, priority, entries, first, last)
  local time = call('TIME')
  local parts = {time[1], time[2], prefix, host.name, priority}
  for i = first, last do
    parts[#parts + 1] = fingerprint_of(entries[i])
  end
  local hex = redis.sha1hex(table.concat(parts, ' '))
  return (hex:sub(1, 16):gsub('..', function(pair)
    return string.char(tonumber(pair, 16))
  end))
end

-- Put a block into the outbox: its id, the length of its head in two bytes, the head CRAWL OWN
-- PRIORITY HOST, and its entries, each after its length in four bytes.
local function send_block(host, priority, entries, first, last)
  local block_id = new_id(host, priority, entries, first, last)
  local kind = note_outside(host, priority)
  local head = table.concat({id, kind, priority, host.name}, ' ')
  local parts = {block_id, struct.pack('>I2', #head), head}
  for i = first, last do
    parts[#parts + 1] = struct.pack('>I4', #entries[i])
    parts[#parts + 1] = entries[i]
  end
  call('RPUSH', prefix .. 'outbox', table.concat(parts))
  local known = cmsgpack.pack({host.name, priority, last - first + 1, kind, now})
  call('HSET', prefix .. 'carried', block_id, known)
end

-- Send entries out in whole blocks, which are limited by number and by bytes; with `all`, also the
-- rest that is less than a block. Returns the first entry that is left without `all`.
function carried.send_out(host, priority, entries, all)
  local first, bytes = 1, 0
  for i, entry in ipairs(entries) do
    if bytes + #entry > rules.block_bytes and i > first then
      send_block(host, priority, entries, first, i - 1)
      first, bytes = i, 0
    end
    bytes = bytes + #entry
    if i - first + 1 == rules.block then
      send_block(host, priority, entries, first, i)
      first, bytes = i + 1, 0
    end
  end
  if all and first <= #entries then
    send_block(host, priority, entries, first, #entries)
  end
  return first
end

-- Remove a block that came back, or was lost, from the record of its host.
function carried.strike(name, priority, kind)
  local record = carried.of(name)
  local at = carried.place(record, priority)
  if not at then
    return
  end
  carried.changed[name] = true
  record[at + 1 + kind] = math.max(record[at + 1 + kind] - 1, 0)
  if record[at + 1] + record[at + 2] == 0 then
    for _ = 1, carried.STEP do
      table.remove(record, at)
    end
    call('SREM', prefix .. 'low', priority .. ':' .. name)
    if record[1] > 0 and record[2] == priority then
      record[1] = 0
      call('ZREM', prefix .. 'dry', name)
    end
  end
end

-- Write a block off: it is no longer outside, and its tasks no longer wait. Returns their number.
function carried.write_off(block_id, values)
  local host, tasks = host_named(values[1]), values[3]
  call('HDEL', prefix .. 'carried', block_id)
  carried.strike(values[1], values[2], values[4])
  host.waiting = host.waiting - tasks
  counts.waiting = counts.waiting - tasks
  return tasks
end

-- Append entries that came back to their window.
function carried.take_in(host, priority, entries)
  call_many('RPUSH', prefix .. 'q:' .. priority .. ':' .. host.name, entries)
  note_priority(host, priority)
  undry(host, priority)
end

function ready_at(host)
  local record = carried.of(host.name)
  if record and record[1] > 0 then
    return nil
  end
  return plain_ready_at(host)
end

function read_hosts(wanted)
  plain_read_hosts(wanted)
  carried.read(wanted)
end

function enqueue(command, host, priority, entry)
  plain_enqueue(command, host, priority, entry)
  undry(host, priority)
end

function save_hosts()
  plain_save_hosts()
  local rows, removed = {}, {}
  for name in pairs(carried.changed) do
    local record = carried.away[name]
    if #record < carried.FIRST then
      carried.away[name] = false
      removed[#removed + 1] = name
    else
      rows[#rows + 1] = name
      rows[#rows + 1] = cmsgpack.pack(record)
    end
  end
  carried.changed = {}
  call_many('HSET', prefix .. 'away', rows)
  call_many('HDEL', prefix .. 'away', removed)
end

end
