#!lua flags=allow-oom
-- Set how long a deliverer seems to have had entries without a word.
--
-- KEYS[1]  the stream
-- ARGV[1]  the group of all deliverers
-- ARGV[2]  the deliverer
-- ARGV[3]  milliseconds: none to keep them, more than a living deliverer needs to give them up
-- ARGV[4…] the ids of the entries; those that are done by now are passed over
--
-- A script only because the client library cannot read the answer to XCLAIM with JUSTID.

for i = 4, #ARGV do
  redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'IDLE', ARGV[3], 'JUSTID')
end
