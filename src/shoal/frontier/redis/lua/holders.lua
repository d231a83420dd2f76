#!lua flags=no-writes
-- List the workers that hold leases, or shares of hosts that are not void.
--
-- uses     step
-- returns  their names
--
-- Atomic, because if a lease passes from one worker to another, exactly one must be listed.

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
      if record[i + 2] > now then -- Void shares may not have been removed yet.
        note(record[i])
      end
    end
  end
end
return names
