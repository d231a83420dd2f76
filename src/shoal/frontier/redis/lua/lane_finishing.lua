-- How a try ends that left by an exit. Needs finishing.lua, exit_policy.lua, exits.lua, lanes.lua.

local plain_end_try = end_try

-- The site itself blocks: its tasks use the exits of another pool, or it is hit less often.
local function blame_site(lane, state, tiers, at, leased_at, retry_after)
  local above = tiers[at + 1]
  if above and exit_policy.may_spend(exits.cost(above), exits.pool(above), exits.now) then
    exit_policy.go_up(state, exits.now)
    return
  end
  state.site_until = exits.now + POLICY.site
  after_pushback(lane.host, now, leased_at, retry_after, true)
end

local passages = {}

-- The host answered. Returns the pair as it is to be kept, or nothing.
function passages.nobody(lane, exit, pair, passage, left_at, leased_at)
  local state, is_block, is_site = lanes.state(lane), passage[2] ~= '', false
  local tiers = exit_policy.tiers(lane.pool, exits.pool)
  local at = math.min(state.tier + 1, #tiers)
  lane.is_changed = true
  if exit.pool ~= tiers[at] then
    exit_policy.after_probe(state, exits.now, not is_block)
  else
    local pool = exits.pool(exit.pool)
    local listed = pool and pool.listed or 0
    is_site = exit_policy.count_answer(state, exit.id, exits.now, is_block, listed)
  end
  if not is_block then
    exit_policy.after_good(exit, pair, exits.now, left_at)
    return pair
  end
  if is_site then
    blame_site(lane, state, tiers, at, leased_at, passage[3])
    return pair
  end
  local pool = exits.pool(exit.pool)
  if exits.now < state.site_until or not pool then
    return pair
  end
  return exit_policy.after_block(exit, pair, pool, exits.now, left_at, passage[3], passage[4])
end

function passages.exit(_, exit, pair, _, left_at)
  exit_policy.after_fault(exit, exits.now, left_at)
  return pair
end

function passages.forged(_, exit, pair, _, left_at)
  exit_policy.after_fault(exit, exits.now, left_at, true)
  return pair
end

passages['pair'] = function(lane, exit, pair, _, left_at, leased_at, is_retry)
  local state, host = lanes.state(lane), lane.host
  local kept, is_host =
    exit_policy.after_unreached(exit, pair, state, host.name, exits.now, left_at)
  lane.is_changed = true
  if is_host then
    after_fault(host, now, leased_at, is_retry)
  end
  return kept
end

-- What the try says of its exit.
local function note_passage(lane, exit, pair, outcome, task)
  local passage = outcome.passage
  if outcome.sent then
    local pool = exits.pool(exit.pool)
    exit.requests = exit.requests + 1
    exit.wire_bytes = exit.wire_bytes + passage[5]
    if pool then
      exit_policy.spend(exits.cost(exit.pool), pool, passage[5], exits.now)
      exits.cost(exit.pool).is_changed = true
    end
  end
  local is_retry = attempts_of(task[3]) > 0
  local kept =
    passages[passage[1]](lane, exit, pair, passage, task[8][4], task[5], is_retry)
  if kept or pair then
    exits.keep_pair(exit, lane.host.name, kept)
  end
  exits.touch(exit)
end

local function end_try(outcome, task, token)
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
  adjust(host, entry, outcome, leased_at, reserved)
  if exit and passage then
    note_passage(lane, exit, pair, outcome, task)
  end
  local fingerprint = fingerprint_of(entry)
  if is_block and outcome.verdict == 'retry' then
    lanes.note_block(fingerprint, lent[1])
  elseif lent[5] > 0 and outcome.verdict ~= 'retry' and outcome.verdict ~= 'returned' then
    call('HDEL', prefix .. 'blocks', fingerprint)
  end
  move(host, lane, priority, entry, outcome, token, is_block and 0 or 1)
end
