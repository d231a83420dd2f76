#!lua flags=no-writes
-- List leased tasks, in the order in which their leases expire.
--
-- uses     step
-- ARGV[2]  how many to skip
-- ARGV[3]  how many to list
-- returns  {{expires, host, priority, entry, worker, leased at}, ...}
--
-- Atomic, because a lease and the moment of its end are in two keys.

if not open_crawl() then
  return unknown()
end
local answer = {}
if state == 'cancelled' then
  return answer
end
local due = call('ZRANGE', prefix .. 'due', ARGV[2], ARGV[2] + ARGV[3] - 1, 'WITHSCORES')
for i = 1, #due, 2 do
  local packed = call('HGET', prefix .. 'held', due[i])
  if packed then
    local host_name, priority, entry, worker, leased_at = values_of(packed)
    answer[#answer + 1] =
      {by_clock(due[i + 1]), host_name, priority, entry, worker, by_clock(leased_at)}
  end
end
return answer
