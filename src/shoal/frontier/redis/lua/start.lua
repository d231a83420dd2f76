#!lua
-- Create a shard of a crawl, or join it, and replace its rules.
--
-- uses     step seen
-- ARGV[2]  'start'; 'begin': a crawl that is over stays over; 'make': only create it, in state new,
--          and change nothing if it exists
-- ARGV[3]  an id that no crawl has had, in case the crawl is created
-- ARGV[4]  the rules as JSON, for people and clients
-- ARGV[5]  the rules as the scripts use them: packed names and numbers
-- ARGV[6]  the carrier, and ARGV[7] the key of the seals of its blocks. Missing without a carrier.
--          Both are kept with the crawl: see broker/
-- returns  the state
--
-- Atomic, because if two clients start the same crawl, one must create it and the other join it.

local action, new_id, as_json, as_numbers = ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local function note_carrier()
  if ARGV[6] then
    call('HSET', KEYS[1], 'carrier', ARGV[6], 'seal_key', ARGV[7])
  end
end

local is_new = call('HSETNX', KEYS[1], 'id', new_id) == 1
if is_new then
  call('HSET', KEYS[1], 'layout', POLICY.layout, 'state', 'new', 'created_at', whole(clock))
  call('HSET', KEYS[1], 'rules', as_json, 'numbers', as_numbers)
  note_carrier()
end
if not open_crawl() then
  return unknown()
end
if action == 'make' or state == 'cancelled' or action == 'begin' and state == 'finished' then
  return state
end
local before, had_pools = rules, rules.pools
rules = cmsgpack.unpack(as_numbers)
if before.window and not rules.window then
  rules = before
  return unknown()
end
if not before.window then
  note_carrier() -- None of its tasks is with a carrier yet.
end
call('HSET', KEYS[1], 'rules', as_json, 'numbers', as_numbers)
if had_pools == 1 and rules.pools ~= 1 then
  rules.pools = 1 -- Tasks may wait for exits.
  call('HSET', KEYS[1], 'numbers', cmsgpack.pack(rules))
end
if state == 'new' then
  keep_first_seeds()
end
if state == 'new' or state == 'finished' then
  call('HSET', KEYS[1], 'sealed', 0)
end
call('HSETNX', KEYS[1], 'started_at', whole(clock))
if state ~= 'paused' then
  set_state('running')
end
return state
