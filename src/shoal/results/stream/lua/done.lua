#!lua flags=allow-oom
-- Remove entries that are in the store, or that never will be.
--
-- KEYS[1]  the stream
-- KEYS[2]  the list of what was put aside
-- ARGV[1]  the group of all deliverers
-- ARGV[2]  how long that list may be
-- ARGV[3]  how many entries
-- ARGV[4…] their ids; then what is to be put aside
--
-- Atomic, because an entry that is acknowledged but still there would be found again. Doing it again
-- does no harm: the answer to the first time may have been lost.

local group, longest, count = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local acknowledged = 0
if #ARGV > 3 + count then
  redis.call('LTRIM', KEYS[2], 0, longest - 1) -- If that is no list, nothing has happened yet.
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
