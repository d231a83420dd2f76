#!lua flags=no-writes
-- List some of the dead tasks that match, the newest first.
--
-- uses     step
-- ARGV[2]  how many to look at
-- ARGV[3]  the place after which to begin: the moment of a death
-- ARGV[4]  and the fingerprint of that task
-- ARGV[5]  a kind, or nothing
-- ARGV[6]  a host, or nothing
-- ARGV[7]  1 to return everything that is known of each, 0 for the fingerprints only
-- ARGV...  fingerprints: if there are any, these are looked at instead
-- returns  {1 if there may be more, the place of the last one that was looked at: when it died, its
--          fingerprint; then, for each that matches, its fingerprint or {when it died, host,
--          priority, entry, reason, detail, kind}}
--
-- Atomic, so that a task that is retried meanwhile is read whole or not at all.

if not open_crawl() then
  return unknown()
end
local most, kind, host = tonumber(ARGV[2]), ARGV[5], ARGV[6]
local wants_all = ARGV[7] == '1'
local key = prefix .. 'died'

-- Compare texts by their bytes, as Redis does. Lua's own comparison depends on the locale.
local function is_less(one, other)
  for i = 1, #one do
    local a, b = one:byte(i), other:byte(i) or -1
    if a ~= b then
      return a < b
    end
  end
  return #one < #other
end

-- The rank of the first task after a place, whether there is still a task at that place or not.
-- Tasks that died at the same moment are in the order of their fingerprints, and may be many.
local function rank_after(at, fingerprint)
  local low = call('ZCOUNT', key, '(' .. at, '+inf')
  local high = low + call('ZCOUNT', key, at, at)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_less(call('ZREVRANGE', key, middle, middle)[1], fingerprint) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

local page, moments = arguments_from(8), {}
local answer = {0, '', ''}
if #page > 0 then
  moments = ask_many('ZMSCORE', key, page)
else
  local first = rank_after(ARGV[3], ARGV[4])
  local found = call('ZREVRANGE', key, first, first + most - 1, 'WITHSCORES')
  for i = 1, #found, 2 do
    page[#page + 1], moments[#moments + 1] = found[i], found[i + 1]
  end
  answer = {#page == most and 1 or 0, moments[#page] or '', page[#page] or ''}
end

-- Whether a task comes after the place. On a page, all do; among named fingerprints, perhaps not.
local function is_after_place(i)
  local at, place = tonumber(moments[i]), tonumber(ARGV[3])
  return at < place or at == place and is_less(page[i], ARGV[4])
end

local function is_fitting(values)
  local own = KINDS[values[6]] or KINDS.other -- A later version may have other kinds.
  return (kind == '' or own == kind) and (host == '' or values[1]:match('[^ ]*$') == host)
end

if ARGV[8] == nil and kind == '' and host == '' and not wants_all then
  for _, fingerprint in ipairs(page) do
    answer[#answer + 1] = fingerprint
  end
  return answer
end
for i, packed in ipairs(ask_many('HMGET', prefix .. 'dead', page)) do
  local values = packed and cmsgpack.unpack(packed)
  if values and is_fitting(values) and is_after_place(i) then
    answer[#answer + 1] = wants_all and {moments[i], unpack(values, 1, 6)} or page[i]
  end
end
return answer
