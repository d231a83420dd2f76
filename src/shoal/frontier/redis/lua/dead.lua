#!lua flags=no-writes
-- Some of the dead, the newest first: those that fit.
--
-- uses     step
-- ARGV[2]  how many to look at
-- ARGV[3]  the place after which they begin: when one died
-- ARGV[4]  and its fingerprint
-- ARGV[5]  a kind, or nothing
-- ARGV[6]  a host, or nothing
-- ARGV[7]  1 if all that is known of them is wanted, else 0
-- ARGV...  fingerprints: then these are looked at instead
-- returns  {whether there may be more, the place of the last one that was looked at: when it died, its
--          fingerprint; of each that fits its fingerprint, or {when it died, host, priority, entry,
--          reason, detail, kind}}
--
-- Atomic, because what is retried meanwhile must not be read half.

if not open_crawl() then
  return unknown()
end
local most, kind, host = tonumber(ARGV[2]), ARGV[5], ARGV[6]
local wants_all = ARGV[7] == '1'
local key = prefix .. 'died'

-- By their bytes, as Redis has them. Lua compares texts as people of some country would.
local function is_less(one, other)
  for i = 1, #one do
    local a, b = one:byte(i), other:byte(i) or -1
    if a ~= b then
      return a < b
    end
  end
  return #one < #other
end

-- How many are before what follows a place, whether one is still there or not. Those that died at one
-- moment are in the order of their fingerprints, and may be many.
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

-- Of a page they all are; of fingerprints that were named, perhaps not.
local function is_after_place(i)
  local at, place = tonumber(moments[i]), tonumber(ARGV[3])
  return at < place or at == place and is_less(page[i], ARGV[4])
end

local function is_fitting(values)
  local own = KINDS[values[6]] or KINDS.other -- A later version may know others.
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
