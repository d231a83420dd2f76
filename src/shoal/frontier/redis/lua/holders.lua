#!lua flags=no-writes
-- The workers that hold leases, or shares of hosts that are not void.
--
-- uses     step
-- returns  their names
--
-- Atomic, because of a lease that passes from one to the other, exactly one must be named.

if not open_crawl() then
  return unknown()
end
local names, known = {}, {}

local function note(worker)
  if not known[worker] then
    known[worker] = true
    names[#names + 1] = worker
  end
end

if state ~= 'cancelled' then
  for _, packed in ipairs(call('HVALS', prefix .. 'held')) do
    note(cmsgpack.unpack(packed)[4])
  end
  for _, packed in ipairs(call('HVALS', prefix .. 'shares')) do
    local record = cmsgpack.unpack(packed)
    for i = 2, #record, 3 do
      if record[i + 2] > now then -- Those that are void may not be struck yet.
        note(record[i])
      end
    end
  end
end
return names
