#!lua flags=no-writes
-- What the clock of the exits says, for those who ask.
--
-- uses     step exit_policy exits
-- KEYS[1]  the hash of all pools
-- returns  {now, how far it is ahead of the server's}
--
-- Atomic, because both are of one moment.

exits.open()
return {whole(exits.now), whole(exits.ahead)}
