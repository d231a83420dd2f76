#!lua flags=allow-oom
-- Retry dead tasks, with a fresh start, or purge them: purged tasks count as dropped.
--
-- uses     step pace shares hosts queue chains
-- ARGV[2]  retry or purge
-- ARGV...  fingerprints
-- returns  {state before, idle, how many}. In a cancelled crawl nothing is retried, only counted
--
-- Atomic, because a dead task leaves in one direction only.

if not open_plain_crawl() then
  return unknown()
end
local was, count = state, 0
local is_refused = ARGV[2] == 'retry' and was == 'cancelled'
for i = 3, #ARGV do
  local packed = call('HGET', prefix .. 'dead', ARGV[i])
  if packed and is_refused then
    count = count + 1
  elseif packed then
    local host_name, priority, entry, reason = values_of(packed)
    if ARGV[2] == 'retry' and chain_of(entry) then
      counts.waiting = counts.waiting + 1
      join_chain(host_name, priority, with_counts(entry, 0, 0))
    elseif ARGV[2] == 'retry' then
      enqueue('RPUSH', host_named(host_name), priority, with_counts(entry, 0, 0))
    else
      counts.dropped = counts.dropped + 1
      call('HSET', prefix .. 'dropped', ARGV[i], TEXTS.purged .. reason)
    end
    counts.dead = counts.dead - 1
    call('HDEL', prefix .. 'dead', ARGV[i])
    call('ZREM', prefix .. 'died', ARGV[i])
    count = count + 1
  end
end
if count > 0 and was == 'finished' and ARGV[2] == 'retry' then
  set_state('running')
end
advance_chains()
save_hosts()
close_crawl()
return {was, is_idle(), count}
