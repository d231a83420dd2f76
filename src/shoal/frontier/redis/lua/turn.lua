#!lua flags=allow-oom
-- Reserve one more turn at a host, and of an exit, for a request of a login. The room of the host,
-- and of the exit, does not matter: the lease that the login is for has its place in both.
--
-- uses     step pace shares hosts queue exit_policy exits lanes
-- ARGV[2]  the host
-- ARGV[3]  the exit that the request leaves by, or nothing
-- returns  how long to wait. 0: the turn is reserved
--
-- Atomic, because a turn that is free and a turn that is taken must be one decision for the fleet.

if not open_crawl() then
  return unknown()
end
local host, exit_id = host_named(ARGV[2]), ARGV[3]
local wait = host.next - now
local exit, pool

if exit_id ~= '' then
  exits.open()
  exit = exits.named(exit_id)
  pool = exit and exits.pool(exit.pool)
end
if pool then
  wait = math.max(wait, exits.turn_at(exit, host.name) - exits.now)
end
if wait > 0 then
  return whole(wait)
end

host.next = now + interval_of(host)
if pool then
  exits.reserve(exit, host.name)
end
save_hosts()
close_crawl()
return '0'
