#!lua flags=allow-oom
-- Hand out tasks whose hosts may be hit now, and reserve their hosts' next turns.
--
-- uses     step pace shares hosts sharing queue chains losing leasing
-- ARGV[2]  the worker
-- ARGV[3]  how many tasks at most
-- ARGV[4]  a prefix that was never used: the tokens are this and a number from 1 on
-- ARGV[5]  1 if a suspect may be handed out, 0 if the worker may hold tasks of other shards
-- ARGV[6]  packed {host = {requests in flight, leases unsent}, ...}: what the worker has of the
--          hosts that it shares. Or nothing
-- ARGV...  tokens that may have been granted without the worker getting them: they are given back
--          first
-- returns  {state, id, life, now, wait (-1: none), idle, whether the worker holds anything, alone,
--           tasks that wait, {host, share, ...},
--           {host, robots.txt stored at (0: unknown), paced, crowded, shared,
--            priority, entry, ...}, ...}
--          In place of the entry of a chain with cookies: {entry, cookies}
--
-- Atomic, because a turn that is free and a turn that is taken must be one decision for the fleet.

if not open_plain_crawl() then
  return unknown()
end
if #ARGV > 6 and state ~= 'cancelled' then
  undo(arguments_from(7))
  save_hosts()
  close_crawl()
end
if state ~= 'running' then
  divide_own(0)
  save_hosts()
  return {state, id, life(), whole(now), -1, is_idle(), 0, 0, counts.waiting, told_shares()}
end
wake_delayed()
reclaim_expired()
advance_chains()
if #names > 0 then
  save_hosts() -- Tasks that were taken back can be handed out in this step.
end

local most = math.min(limit, pages_left())
divide_own(most)
local is_withheld = most > 0 and serve_ready_hosts(most)
leave_idle()
local alone, holds = 0, 0
if most > 0 and count == 0 and call('LLEN', prefix .. 'suspects') > 0 then
  holds = held_count(worker) > 0 and 1 or 0
  if holds == 0 and may_suspect and serve_suspect() then
    alone = 1
  end
end
call_many('HSET', prefix .. 'held', held)
call_many('ZADD', prefix .. 'due', due)
save_hosts()
close_crawl()
local wait = state == 'running' and next_moment() or -1
if is_withheld and count == 0 then
  wait = math.max(wait, POLICY.share_wait)
end
if rules.cookies == 1 then
  add_jars(granted)
end
local answer = {
  state, id, life(), whole(now), whole(wait), is_idle(), holds, alone, counts.waiting, told_shares()
}
for _, told in ipairs(granted) do
  answer[#answer + 1] = told
end
return answer
