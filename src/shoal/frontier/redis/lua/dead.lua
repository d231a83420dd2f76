#!lua flags=no-writes
-- A page of the dead, in the order of their fingerprints.
--
-- uses     step
-- ARGV[2]  how many
-- ARGV[3]  the fingerprint after which the page begins, or nothing
-- returns  {{host, priority, entry, reason, detail}, ...}
--
-- Atomic, because what is retried meanwhile must not be read half.

if not open_crawl() then
  return unknown()
end
local first = ARGV[3] == '' and '-' or '(' .. ARGV[3]
local page = call('ZRANGEBYLEX', prefix .. 'died', first, '+', 'LIMIT', 0, ARGV[2])
for i, fingerprint in ipairs(page) do
  page[i] = cmsgpack.unpack(call('HGET', prefix .. 'dead', fingerprint))
end
return page
