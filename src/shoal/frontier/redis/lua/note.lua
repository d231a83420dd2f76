-- Write a note in the name of a term, or strike it out.
--
-- KEYS[1]  hash  who leads, see lead.lua
-- KEYS[2]  hash  the shelf: name -> text
-- ARGV[1]  the term
-- ARGV[2]  the name
-- ARGV[3]  the text; left out to strike the note out
-- returns  1, or 0: the term is over
--
-- Atomic, because the term must not end between the look at it and the write.

local term, till = unpack(redis.call('HMGET', KEYS[1], 'term', 'until'))
if term ~= ARGV[1] or till == '0' then
  return 0
end
if ARGV[3] then
  redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
else
  redis.call('HDEL', KEYS[2], ARGV[2])
end
return 1
