#!lua flags=no-writes
-- Return all counters and fields of a shard of a crawl.
--
-- uses     step seen
-- returns  {name, value, ...}: now, idle, life, bloom (1: there is a Bloom filter), all counts,
--          failures by kind, the spider's own counters, and fields of the hash
--
-- Atomic, because counters that are read one by one do not add up.

if not open_crawl() then
  return unknown()
end
local bloom = call('EXISTS', prefix .. 'bloom:' .. generation())
local told = {'now', whole(now), 'idle', is_idle(), 'life', life(), 'bloom', bloom}
for name, count in pairs(counts) do
  told[#told + 1] = name
  told[#told + 1] = whole(count)
end
local failed = call('HGETALL', prefix .. 'failures')
for i = 1, #failed, 2 do
  told[#told + 1] = 'failed ' .. failed[i]
  told[#told + 1] = failed[i + 1]
end
local counted = call('HGETALL', prefix .. 'own_counts')
for i = 1, #counted, 2 do
  told[#told + 1] = 'own ' .. counted[i]
  told[#told + 1] = counted[i + 1]
end
for _, name in ipairs({'id', 'state', 'rules', 'created_at', 'started_at', 'finished_at'}) do
  local value = call('HGET', KEYS[1], name)
  if value then
    told[#told + 1] = name
    told[#told + 1] = value
  end
end
return told
