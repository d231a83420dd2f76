#!lua flags=allow-oom
-- Write off lost blocks: their tasks no longer wait, and count as dropped.
--
-- uses     step pace shares hosts queue
-- ARGV...  the ids of the blocks
-- returns  how many tasks they had. Blocks that came back meanwhile are skipped
--
-- Atomic, because a block comes back or is lost, never both.

if not open_own_crawl() then
  return unknown()
end
local lost = 0
for i = 2, #ARGV do
  local packed = call('HGET', prefix .. 'carried', ARGV[i])
  if packed then
    lost = lost + carried.write_off(ARGV[i], cmsgpack.unpack(packed))
  end
end
counts.dropped = counts.dropped + lost
save_hosts()
close_crawl()
return lost
