-- Write a note in the name of a leader and its term, or delete it.
--
-- KEYS[1]  hash  who leads, see lead.lua
-- KEYS[2]  hash  the topic: name -> text
-- ARGV[1]  the term
-- ARGV[2]  the holder of the term: a replica that takes over may not know of it, and give its
--          number to another holder
-- ARGV[3]  the name
-- ARGV[4]  the text; left out to delete the note
-- returns  1, or 0: the term is over
--
-- Atomic, because the term must not end between the check and the write.

local leader = redis.call('HMGET', KEYS[1], 'term', 'holder', 'until')
if leader[1] ~= ARGV[1] or leader[2] ~= ARGV[2] or leader[3] == '0' then
  return 0
end
if ARGV[4] then
  redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
else
  redis.call('HDEL', KEYS[2], ARGV[3])
end
return 1
