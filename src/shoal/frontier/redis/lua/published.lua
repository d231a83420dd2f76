#!lua flags=allow-oom
-- Blocks are with the carrier: they leave the outbox.
--
-- uses     step
-- ARGV...  their ids, as they stand in the outbox from its beginning on
-- returns  how many have left
--
-- Atomic, because a server that was set back may have others there by now, which nobody has published.

if not open_own_crawl() then
  return unknown()
end
local outbox, count = prefix .. 'outbox', 0
for i = 2, #ARGV do
  local first = call('LINDEX', outbox, 0)
  if not first or first:sub(1, 8) ~= ARGV[i] then
    break
  end
  call('LPOP', outbox)
  count = count + 1
end
return count
