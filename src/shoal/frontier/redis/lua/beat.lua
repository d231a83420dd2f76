#!lua flags=allow-oom
-- Store a worker's sign of life.
--
-- uses     step
-- ARGV[2]  the worker
-- ARGV[3]  its pulse as JSON
-- returns  1
--
-- ID:workers  hash  worker -> the moment, a space, the pulse
--
-- Atomic, because the moment must be the server's.

if not open_crawl() then
  return unknown()
end
call('HSET', prefix .. 'workers', ARGV[2], whole(now) .. ' ' .. ARGV[3])
close_crawl()
return 1
