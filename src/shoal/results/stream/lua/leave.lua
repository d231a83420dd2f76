#!lua flags=allow-oom
-- Remove a deliverer that ends, and those that died long ago.
--
-- KEYS[1]  the stream
-- ARGV[1]  the group of all deliverers
-- ARGV[2]  the deliverer that ends
-- ARGV[3]  idle milliseconds after which a deliverer died long ago
--
-- Atomic, because deleting a deliverer also deletes the record of the entries it holds. It must hold
-- none at that moment.

for _, deliverer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local name, pending, idle_ms = deliverer[2], deliverer[4], deliverer[6]
  if pending == 0 and (name == ARGV[2] or idle_ms > tonumber(ARGV[3])) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], name)
  end
end
