#!lua
-- Add a batch to the stream, unless too many wait there already.
--
-- KEYS[1]  the stream
-- ARGV[1]  how many may wait
-- ARGV[2]  the crawl
-- ARGV[3…] the parts of the batch, each an entry of its own
-- returns  1, or 0 if the stream is full
--
-- Atomic, because many workers save at once: the bound must hold for all of them together, and of a
-- batch in parts there must be all or nothing. A batch is let in as long as there is room for one
-- entry, however many parts it has: else a large one would wait for ever.

if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then
  return 0
end
for part = 3, #ARGV do
  redis.call('XADD', KEYS[1], '*', 'crawl', ARGV[2], 'batch', ARGV[part])
end
return 1
