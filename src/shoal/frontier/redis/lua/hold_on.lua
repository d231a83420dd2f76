-- Prolong the hold of an account.
--
-- uses     step exit_policy exits identity_policy identities
-- KEYS[1]  the hash of all pools
-- ARGV[2]  the account
-- ARGV[3]  until when it is held, as its holder was told: the token of the hold
-- ARGV[4]  for how long from now
-- returns  until when, as text. Nothing: the hold is over, and nothing was changed
--
-- Atomic, because another holder may have the account by now.

exits.open()
local exit = exits.named(ARGV[2])
if not exit or not exit.account or not identity_policy.is_hold(exit, tonumber(ARGV[3]), exits.now) then
  return false
end
identity_policy.hold(exit, exits.now + tonumber(ARGV[4]))
identities.touch(exit)
exits.save()
return whole(exit.next_at)
