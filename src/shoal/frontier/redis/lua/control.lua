#!lua flags=allow-oom
-- Seal, pause, resume or cancel a shard of a crawl.
--
-- uses     step exit_policy exits identity_policy identities taking_back
-- ARGV[2]  seal, pause, resume, cancel; for a crawl with several shards also finish and wake
-- returns  {state before, state, idle}. Nothing was changed if the state does not allow the action
--
-- Atomic, because a crawl ends only once.

if not open_own_crawl() then
  return unknown()
end
local action, was = ARGV[2], state
local becomes = TRANSITIONS[action][was]
if action == 'seal' then
  sealed = true
  call('HSET', KEYS[1], 'sealed', 1)
elseif becomes and (action ~= 'finish' or counts.leased == 0) then
  if action == 'cancel' and was ~= becomes then
    -- Queues and leases stay where they are; in a cancelled crawl, they count as dropped.
    counts.dropped = counts.dropped + counts.waiting + counts.delayed + counts.leased
    counts.waiting, counts.delayed, counts.leased = 0, 0, 0
    call('DEL', prefix .. 'jars')
    if rules.pools == 1 then
      exits.unlend_all()
      exits.save()
    end
  end
  set_state(becomes)
end
close_crawl()
return {was, state, is_idle()}
