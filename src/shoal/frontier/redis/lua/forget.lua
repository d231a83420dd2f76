#!lua flags=allow-oom
-- Forget a shard of a crawl. It is gone at once for all clients; its keys are deleted later, in
-- small steps.
--
-- uses     step seen exit_policy exits identity_policy identities taking_back
-- returns  1
--
-- Atomic, because a client that starts the crawl over must not find half of the old one.

if open_own_crawl() then
  forget_seen()
  if rules.pools == 1 and state ~= 'cancelled' then
    exits.unlend_all()
    exits.save()
  end
  local base = KEYS[1]:sub(1, -6)
  call('SADD', base .. 'garbage', id)
  call('SET', base .. 'forgotten', id, 'EX', 86400) -- For a day, clients know it was not lost.
  call('DEL', KEYS[1])
elseif id then
  return unknown()
end
return 1
