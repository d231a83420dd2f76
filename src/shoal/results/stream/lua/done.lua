#!lua flags=allow-oom
-- Remove entries that are in the store, or that can never be stored.
--
-- KEYS[1]  the stream
-- KEYS[2]  the list of records of entries that were put aside
-- ARGV[1]  the group of all deliverers
-- ARGV[2]  the maximum length of that list
-- ARGV[3]  the number of entries
-- ARGV[4…] their ids; then the records to add to that list
--
-- Atomic, because an entry that is acknowledged but not deleted would be delivered again. Running it
-- twice does no harm, as the first answer may have been lost.

local group, longest, count = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local acknowledged = 0
if #ARGV > 3 + count then
  redis.call('LTRIM', KEYS[2], 0, longest - 1) -- Fails before any change if it is no list.
end
for i = 4, 3 + count do
  acknowledged = acknowledged + redis.call('XACK', KEYS[1], group, ARGV[i])
  redis.call('XDEL', KEYS[1], ARGV[i])
end
if acknowledged > 0 and #ARGV > 3 + count then
  for i = 4 + count, #ARGV do
    redis.call('LPUSH', KEYS[2], ARGV[i])
  end
  redis.call('LTRIM', KEYS[2], 0, longest - 1)
end
