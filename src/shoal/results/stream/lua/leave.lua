#!lua flags=allow-oom
-- Forget a deliverer that ends, and those that have died long ago.
--
-- KEYS[1]  the stream
-- ARGV[1]  the group of all deliverers
-- ARGV[2]  the deliverer that ends
-- ARGV[3]  milliseconds without news after which one has died long ago
--
-- Atomic, because whoever deletes a deliverer deletes the record of what it holds: it must hold nothing.

for _, deliverer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local name, pending, idle_ms = deliverer[2], deliverer[4], deliverer[6]
  if pending == 0 and (name == ARGV[2] or idle_ms > tonumber(ARGV[3])) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], name)
  end
end
