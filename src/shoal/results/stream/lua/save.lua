#!lua
-- Add a batch to the stream, unless it is full.
--
-- KEYS[1]  the stream
-- ARGV[1]  the maximum number of waiting entries
-- ARGV[2]  the crawl
-- ARGV[3…] the parts of the batch, each an entry of its own
-- returns  1, or 0 if the stream is full
--
-- Atomic, because many workers save at once: the limit holds for all of them together, and all parts
-- of a batch are added or none. One free place is enough for a batch of any number of parts;
-- otherwise a large batch would wait for ever.

if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then
  return 0
end
for part = 3, #ARGV do
  redis.call('XADD', KEYS[1], '*', 'crawl', ARGV[2], 'batch', ARGV[part])
end
return 1
