-- Write a note in the name of a term, or delete it.
--
-- KEYS[1]  hash  who leads, see lead.lua
-- KEYS[2]  hash  the topic: name -> text
-- ARGV[1]  the term
-- ARGV[2]  whose it is: a replica that takes over may not know of a term, and give its number out again
-- ARGV[3]  the name
-- ARGV[4]  the text; left out to delete the note
-- returns  1, or 0: the term is over
--
-- Atomic, because the term must not end between the look at it and the write.

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
