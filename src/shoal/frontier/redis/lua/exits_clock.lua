#!lua flags=no-writes
-- Read the clock of the exits.
--
-- uses     step exit_policy exits
-- KEYS[1]  the hash of all pools
-- returns  {now, how far it is ahead of the server's}
--
-- Atomic, because both values must be of the same moment.

exits.open()
return {whole(exits.now), whole(exits.ahead)}
