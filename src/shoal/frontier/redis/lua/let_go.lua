-- End the hold of an account, and apply its report.
--
-- uses     step exit_policy exits identity_policy identities
-- KEYS[1]  the hash of all pools
-- ARGV[2]  the account
-- ARGV[3]  until when it is held, as its holder was told: the token of the hold
-- ARGV[4]  packed report, as for finish.lua
-- returns  1, or 0 if the hold is over: then nothing was changed
--
-- Atomic, because workers may wait for the account.

exits.open()
local exit, report = exits.named(ARGV[2]), cmsgpack.unpack(ARGV[4])
if not exit or not exit.account or not identity_policy.is_hold(exit, tonumber(ARGV[3]), exits.now) then
  return 0
end
identity_policy.let_go(exit.account, exit, report, exits.now)
identities.keep_jar(exit, report.jar)
identities.touch(exit)
local group = exits.pool(exit.pool)
if group then
  group.version = group.version + 1 -- Its lanes are worth a look.
  call('HSET', EXITS_BASE .. 'pools', group.name, cmsgpack.pack(group))
end
exits.save()
return 1
