#!lua flags=allow-oom
-- Remove blocks from the outbox that the carrier has now.
--
-- uses     step
-- ARGV...  their ids, in the order of the outbox, from its beginning on
-- returns  how many were removed
--
-- Atomic, because a server that lost its last moments may have other blocks there by now, which
-- were not published.

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
