-- Create or change a pool of exits, or a group of accounts.
--
-- uses     step exit_policy exits identity_policy identities
-- KEYS[1]  the hash of all pools
-- ARGV[2]  its rules as JSON, for people and clients
-- ARGV[3]  its rules as the scripts use them: packed names and values
-- ARGV...  its exits: the id, kind and country of each
-- returns  1
--
-- Atomic, because an exit that is lent meanwhile must find its place. Not among the scripts that
-- are loaded: a server that does not know those is a new one, and workers must notice that.

exits.open()
local new = {}
local pool, listed = cmsgpack.unpack(ARGV[3]), {}
local name = pool.name
local before, rules_before = exits.pool(name), call('HGET', EXITS_BASE .. 'rules', name)
local is_other = rules_before ~= ARGV[2]

local ids = {}
for i = 4, #ARGV, 3 do
  if not listed[ARGV[i]] then
    ids[#ids + 1] = ARGV[i]
  end
  listed[ARGV[i]] = {ARGV[i + 1], ARGV[i + 2]}
end
local was_listed = call('SMEMBERS', EXITS_BASE .. 'listed:' .. name)
exits.read(ids)
exits.read(was_listed)
pool.listed = #ids
exits.pools[name] = pool

-- List an exit in this pool. Returns whether it was not listed here before.
local function take_in(exit_id, kind, country)
  local exit = exits.known[exit_id]
  if not exit then
    exit = exits.make(exit_id)
    exit.pool, exit.kind, exit.country = name, kind, country
    new[#new + 1] = whole(exits.rank(exit)) -- The rank of one that was never used.
    new[#new + 1] = exit_id
    return true
  end
  local is_new = exit.pool ~= name or not exit.is_listed
  if is_new and exit.pool ~= '' and exit.pool ~= name then
    exit.is_listed = false
    exits.touch(exit)
    call('SREM', EXITS_BASE .. 'listed:' .. exit.pool, exit_id)
  end
  if is_new or is_other or exit.kind ~= kind or exit.country ~= country then
    exit.pool, exit.kind, exit.country, exit.is_listed = name, kind, country, true
    exits.touch(exit)
  end
  return is_new
end

local is_more = false
for _, exit_id in ipairs(ids) do
  is_more = take_in(exit_id, listed[exit_id][1], listed[exit_id][2]) or is_more
end
local gone = {}
for _, exit_id in ipairs(was_listed) do
  if not listed[exit_id] then
    gone[#gone + 1] = exit_id
    exits.known[exit_id].is_listed = false
    exits.touch(exits.known[exit_id])
  end
end
call_many('ZADD', EXITS_BASE .. 'free:' .. name, new)
call_many('SREM', EXITS_BASE .. 'listed:' .. name, gone)
call_many('SADD', EXITS_BASE .. 'listed:' .. name, ids)
pool.version = (before and before.version or 0) + ((is_other or is_more) and 1 or 0)
call('HSET', EXITS_BASE .. 'pools', name, cmsgpack.pack(pool))
call('HSET', EXITS_BASE .. 'rules', name, ARGV[2])
exits.save()
return 1
