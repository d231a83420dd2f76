#!lua flags=no-writes
-- The workers that hold leases.
--
-- uses     step
-- returns  their names
--
-- Atomic, because of a lease that passes from one to the other, exactly one must be named.

if not open_crawl() then
  return unknown()
end
local names, known = {}, {}
if state ~= 'cancelled' then
  for _, packed in ipairs(call('HVALS', prefix .. 'held')) do
    local worker = cmsgpack.unpack(packed)[4]
    if not known[worker] then
      known[worker] = true
      names[#names + 1] = worker
    end
  end
end
return names
