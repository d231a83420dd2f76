#!lua flags=allow-oom
-- Remove entries that are in the store, or that never will be.
--
-- KEYS[1]  the stream
-- KEYS[2]  the list of what was put aside
-- ARGV[1]  the group of all drainers
-- ARGV[2]  how long that list may be
-- ARGV[3]  how many entries
-- ARGV[4…] their ids; then what is to be put aside
--
-- Atomic, because an entry that is acknowledged but still there would be found again. Doing it again
-- does no harm: the answer to the first time may have been lost.

local group, longest, count = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local ids, aside = {}, {}
for i = 4, #ARGV do
  local list = i < 4 + count and ids or aside
  list[#list + 1] = ARGV[i]
end
local were_there = redis.call('XACK', KEYS[1], group, unpack(ids)) > 0
redis.call('XDEL', KEYS[1], unpack(ids))
if were_there and #aside > 0 then
  redis.call('LPUSH', KEYS[2], unpack(aside))
  redis.call('LTRIM', KEYS[2], 0, longest - 1)
end
