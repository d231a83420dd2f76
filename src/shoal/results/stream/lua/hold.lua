#!lua flags=allow-oom
-- Set the idle time of the entries that a deliverer holds.
--
-- KEYS[1]  the stream
-- ARGV[1]  the group of all deliverers
-- ARGV[2]  the deliverer
-- ARGV[3]  milliseconds: 0 to keep them; to give them up, more than a living deliverer ever reaches
-- ARGV[4…] the ids of the entries; those already removed are skipped
--
-- A script only because the client library cannot parse the answer to XCLAIM with JUSTID.

for i = 4, #ARGV do
  redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'IDLE', ARGV[3], 'JUSTID')
end
