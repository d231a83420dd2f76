#!lua flags=allow-oom
-- Forget a shard of a crawl: at once for everybody, though its keys are deleted bit by bit later.
--
-- uses     step seen exit_policy exits identity_policy identities taking_back
-- returns  nothing
--
-- Atomic, because whoever starts the crawl over must not find half of the old one.

if open_own_crawl() then
  forget_seen()
  if rules.pools == 1 and state ~= 'cancelled' then
    exits.unlend_all()
    exits.save()
  end
  local base = KEYS[1]:sub(1, -6)
  call('SADD', base .. 'garbage', id)
  call('SET', base .. 'forgotten', id, 'EX', 86400) -- Not lost: somebody wanted this.
  call('DEL', KEYS[1])
elseif id then
  return unknown()
end
return 1
