-- Accounts: what they have beyond what exits have. Needs step.lua, exits.lua, identity_policy.lua.
--
-- An account is an exit of its group, and exits.lua has its record as an exit. The names of
-- accounts and groups begin with @: see core/identities.py. Passwords are never stored here. All
-- keys begin with shoal:{exits}:
--
-- accounts  hash  account -> packed values, see exit_forms.py
-- jars      hash  account -> its cookies, as the worker that logged in has written them

local identities = {changed = {}}

do

local plain_read, plain_make, plain_save = exits.read, exits.make, exits.save
local plain_ready_at, plain_rank, plain_give_back = exits.ready_at, exits.rank, exits.give_back

-- Whether a name is that of a group or an account.
function identities.is_ours(name)
  return name:sub(1, 1) == '@'
end

function exits.read(ids)
  local wanted = {}
  for _, exit_id in ipairs(ids) do
    if exits.known[exit_id] == nil and identities.is_ours(exit_id) then
      wanted[#wanted + 1] = exit_id
    end
  end
  plain_read(ids)
  for i, packed in ipairs(ask_many('HMGET', EXITS_BASE .. 'accounts', wanted)) do
    local exit = exits.known[wanted[i]]
    if exit then
      exit.account = account_of(packed and cmsgpack.unpack(packed) or NEW_ACCOUNT)
    end
  end
end

function exits.make(exit_id)
  local exit = plain_make(exit_id)
  if identities.is_ours(exit_id) then
    exit.account = account_of(NEW_ACCOUNT)
  end
  return exit
end

function exits.ready_at(exit, pool)
  if exit.account then
    return identity_policy.ready_at(exit.account, exit, pool)
  end
  return plain_ready_at(exit, pool)
end

function exits.rank(exit)
  return exit.account and identity_policy.rank_at(exit.account, exit) or plain_rank(exit)
end

-- Note that an account has changed: it gets its new place among others at once, and is written back
-- later.
function identities.touch(exit)
  identities.changed[exit.id] = true
  exits.touch(exit)
end

function exits.save()
  local rows = {}
  for exit_id in pairs(identities.changed) do
    rows[#rows + 1] = exit_id
    rows[#rows + 1] = cmsgpack.pack(account_values(exits.known[exit_id].account))
  end
  identities.changed = {}
  call_many('HSET', EXITS_BASE .. 'accounts', rows)
  plain_save()
end

function exits.give_back(task, host_name, is_lost)
  local exit = task[9] and exits.unlend(task[9], host_name)
  if exit then
    identity_policy.unlend(exit.account, exit)
    if is_lost then
      identity_policy.after_loss(exit, exits.now)
    end
    identities.touch(exit)
  end
  return plain_give_back(task, host_name)
end

-- The cookies of an account. Empty: it has none.
function identities.jar(exit)
  return call('HGET', EXITS_BASE .. 'jars', exit.id) or ''
end

function identities.keep_jar(exit, jar)
  if jar == '' then
    call('HDEL', EXITS_BASE .. 'jars', exit.id)
  elseif jar then
    call('HSET', EXITS_BASE .. 'jars', exit.id, jar)
  end
end

end
