-- Ends tries whose requests left by an exit. Needs finishing.lua, exit_policy.lua, exits.lua,
-- lanes.lua.

do

local plain_end_try, plain_held_by = end_try, held_by

-- As without exits, and read at once everything that ending these tries will need.
function held_by(owners)
  local held = plain_held_by(owners)
  local ids, lane_names, by_host = {}, {}, {}
  for _, task in ipairs(held) do
    local lent, account = task and task[8], task and task[9]
    if lent and lent[1] ~= '' then
      local host_name = task[1]:match('[^ ]*$')
      by_host[host_name] = by_host[host_name] or {}
      table.insert(by_host[host_name], lent[1])
      ids[#ids + 1], lane_names[#lane_names + 1] = lent[1], task[1]
    end
    ids[#ids + 1] = account and account[1] or nil
  end
  exits.read(ids)
  for host_name, own in pairs(by_host) do
    exits.read_pairs(host_name, own)
  end
  lanes.read(lane_names)
  lanes.read_states(lane_names)
  return held
end

-- The site itself blocks: let its tasks use the exits of the next pool, or hit it less often.
local function blame_site(lane, state, tiers, at, leased_at, retry_after)
  local above = tiers[at + 1]
  if above and exit_policy.may_spend(exits.cost(above), exits.pool(above), exits.now) then
    state.tier = at - 1
    exit_policy.go_up(state, exits.now)
    return
  end
  state.site_until = exits.now + POLICY.site
  after_pushback(lane.host, now, leased_at, retry_after, true)
end

local passages = {}

-- The functions in `passages` apply what a try tells, by what is to blame. Each returns the pair to
-- keep, or nothing. Here the host answered, so nobody is to blame for a failure on the way.
function passages.nobody(lane, exit, pair, passage, try)
  local state, is_block, is_site = lanes.state(lane), passage[2] ~= '', false
  local tiers = lanes.tiers(lane)
  local at = math.min(state.tier + 1, #tiers)
  lane.is_changed = true
  if exit.pool ~= tiers[at] then
    if exit_policy.is_probe(state, exit.pool, tiers, try.left_at) then
      exit_policy.after_probe(state, exits.now, not is_block)
    end
  else
    local pool = exits.pool(exit.pool)
    local listed = pool and pool.listed or 0
    is_site = exit_policy.count_answer(state, exit.id, exits.now, is_block, listed)
  end
  local pool = exits.pool(exit.pool)
  if is_site then
    blame_site(lane, state, tiers, at, try.leased_at, passage[3])
  elseif not try.says then
    return pair
  elseif not is_block then
    exit_policy.after_good(exit, pair, exits.now, try.left_at)
  elseif exits.now >= state.site_until and pool then
    return exit_policy.after_block(
      exit, pair, pool, exits.now, try.left_at, passage[3], passage[4]
    )
  end
  return pair
end

function passages.exit(_, exit, pair, _, try)
  exit_policy.after_fault(exit, exits.now, try.left_at)
  return pair
end

function passages.forged(_, exit, pair, _, try)
  exit_policy.after_fault(exit, exits.now, try.left_at, true)
  return pair
end

function passages.pair(lane, exit, pair, _, try)
  if not try.says then
    return pair
  end
  local state, host = lanes.state(lane), lane.host
  local kept, is_host =
    exit_policy.after_unreached(exit, pair, state, host.name, exits.now, try.left_at)
  lane.is_changed = true
  if is_host then
    after_fault(host, now, try.leased_at, try.is_retry)
  end
  return kept
end

-- Apply what the try tells about its exit.
local function note_passage(lane, exit, pair, outcome, task)
  local passage = outcome.passage
  if outcome.sent then
    exits.count(exit, passage[5])
  end
  if passage[1] == 'nobody' and passage[2] == '' and not outcome.sent then
    return
  end
  -- After a block, a gateway has another session: answers to the one before say nothing about it.
  local try = {left_at = task[8][4], leased_at = task[5], says = task[8][2] == exit.session}
  try.is_retry = attempts_of(task[3]) > 0
  local kept = passages[passage[1]](lane, exit, pair, passage, try)
  if kept or pair then
    exits.keep_pair(exit, lane.host.name, kept)
  end
end

function end_try(outcome, task, token)
  local lent = task[8]
  if not lent then
    return plain_end_try(outcome, task, token)
  end
  local _, priority, entry, worker, leased_at, reserved = unpack(task, 1, 6)
  local lane, exit, pair = lanes.let_go(task)
  local host, passage = lane.host, outcome.passage
  local is_block = passage and passage[2] ~= ''
  lane.leased = lane.leased - 1
  counts.leased = counts.leased - 1
  note_holding(worker, -1)
  outcome.is_lost = passage and passage[1] ~= 'nobody' -- The request did not get to the host.
  adjust(host, entry, outcome, leased_at, reserved)
  if exit and passage then
    note_passage(lane, exit, pair, outcome, task)
    exits.touch(exit)
  end
  lanes.look_soon(lane)
  local fingerprint = fingerprint_of(entry)
  local is_over = outcome.verdict ~= 'retry' and outcome.verdict ~= 'returned'
  if is_block and not is_over then
    lanes.note_block(fingerprint, lent[1])
  elseif is_over and lent[5] > 0 then
    call('HDEL', prefix .. 'blocks', fingerprint)
  end
  move(host, lane, priority, entry, outcome, token, is_block and 0 or 1)
end

end
