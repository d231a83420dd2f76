-- Write a note if its text is still the one that the caller has read.
--
-- KEYS[1]  hash  the topic: name -> text
-- ARGV[1]  the name
-- ARGV[2]  the text
-- ARGV[3]  what was read; left out if there was no note
-- returns  1, or 0: the text is another by now
--
-- Atomic, because of several clients that have read the same text, only one may write.

local known = redis.call('HGET', KEYS[1], ARGV[1])
if known ~= (ARGV[3] or false) then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
