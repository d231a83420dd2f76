-- Hold an account, so that no worker gets it for a while.
--
-- uses     step exit_policy exits identity_policy identities lending identity_lending
-- KEYS[1]  the hash of all pools
-- ARGV[2]  the account
-- ARGV[3]  the host at which it is to be used
-- ARGV[4]  for how long
-- ARGV[5]  1 if it needs an exit, should its group use a pool; 0 if no request is sent
-- returns  {until when, as text; the exit, session and pool that it uses (or '', 0 and '');
--          account, logged in, cookies, user agent, login URL}. Nothing: it is in use or not
--          listed, or there is no exit for it
--
-- Atomic, because an account is held or lent, never both.

exits.open()
local exit, host_name = exits.named(ARGV[2]), ARGV[3]
local group = exit and exits.pool(exit.pool)
if not group or not exit.account or not exit.is_listed then
  return false
end
if exit.leased > 0 or identity_policy.is_held(exit, exits.now) then
  return false
end
local may_go, through = true, nil
if ARGV[5] == '1' then
  may_go, through = identity_lending.ways(group, host_name)(exit)
end
if not may_go then
  return false
end
local account = exit.account
if through then
  identity_policy.bind(account, through)
  exits.reserve(through, host_name)
end
identity_policy.hold(exit, exits.now + tonumber(ARGV[4]))
identities.touch(exit)
exits.save()
local way = through and {through.id, through.session, through.pool} or {'', 0, ''}
return {
  whole(exit.next_at),
  way[1], way[2], way[3],
  exit.id, account.is_in and 1 or 0, identities.jar(exit), account.user_agent, account.login_url,
}
