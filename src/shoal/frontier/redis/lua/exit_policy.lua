-- When an exit may be used, and what an answer does to it: the decisions of exit_policy.py, here
-- where they can be atomic. Tests in lock step compare them with the SQLite frontier, which uses
-- that file itself.
--
-- All functions are in one table, and private ones in a block: a script has room for some 200 local
-- names.

local exit_policy = {}

do

function exit_policy.faded(count, since, at)
  if count == 0 then
    return 0
  end
  return count * 0.5 ^ (math.max(at - since, 0) / POLICY.half_life)
end

function exit_policy.score(good, bad, prior)
  return (good + POLICY.prior * prior) / (good + bad + POLICY.prior)
end

local function score_of(of, at, prior)
  local good = exit_policy.faded(of.good, of.scored_at, at)
  return exit_policy.score(good, exit_policy.faded(of.bad, of.scored_at, at), prior)
end

function exit_policy.score_at(pair, exit, at)
  local prior = score_of(exit, at, 1)
  return pair and score_of(pair, at, prior) or prior
end

function exit_policy.exit_ready_at(exit, pool)
  local limit = exit.faults >= POLICY.faults_out and 1 or pool.concurrency
  if not exit.is_listed or exit.leased >= limit then
    return math.huge
  end
  return math.max(exit.next_at, exit.out_until)
end

function exit_policy.pair_ready_at(pair)
  if not pair then
    return 0
  end
  if pair.level > 0 and pair.is_tried then
    return math.huge
  end
  return math.max(pair.next_at, pair.cool_until)
end

function exit_policy.is_sticking(pair, pool, at)
  return pair and pool.sticky > 0 and at < pair.since + pool.sticky
end

function exit_policy.new_pair(exit, at)
  local pair = pair_of(NEW_PAIR)
  pair.session, pair.scored_at = exit.session, at
  return pair
end

-- Reserve the next turn of an exit, and of the pair. Returns the pair to keep, or nothing.
function exit_policy.reserve(exit, pair, pool, at)
  exit.next_at = at + pool.interval
  if not pair then
    if pool.pair_interval == 0 then
      return nil
    end
    pair = exit_policy.new_pair(exit, at)
  end
  pair.next_at = math.max(pair.next_at, at + pool.pair_interval)
  return pair
end

-- Lend an exit for a request. Returns the pair to keep, or nothing.
function exit_policy.lend(exit, pair, pool, at)
  exit.leased = exit.leased + 1
  exit.used_at = at + exit.leased -- A microsecond for each lease: see TURN_S.
  pair = exit_policy.reserve(exit, pair, pool, at)
  if not pair then
    if pool.sticky == 0 then
      return nil
    end
    pair = exit_policy.new_pair(exit, at)
    pair.next_at = at
  end
  if pool.sticky > 0 and not exit_policy.is_sticking(pair, pool, at) then
    pair.since = at
  end
  pair.is_tried = pair.level > 0
  return pair
end

function exit_policy.unlend(exit, pair, leased_at)
  exit.leased = math.max(exit.leased - 1, 0)
  if pair and leased_at >= pair.blocked_at then
    pair.is_tried = false
  end
end

local function note_answer(of, at, good, bad)
  of.good = exit_policy.faded(of.good, of.scored_at, at) + good
  of.bad = exit_policy.faded(of.bad, of.scored_at, at) + bad
  of.scored_at = at
end

-- Note that an exit works, because it brought an answer.
local function note_works(exit, leased_at)
  if leased_at >= exit.out_at then
    exit.faults, exit.out_until = 0, 0
  end
end

function exit_policy.after_good(exit, pair, at, leased_at)
  note_answer(exit, at, 1, 0)
  note_works(exit, leased_at)
  if pair then
    note_answer(pair, at, 1, 0)
    if pair.level > 0 and leased_at >= pair.blocked_at then
      pair.level = math.floor(pair.level / 2)
    end
  end
end

-- The host has blocked the exit. Returns the pair to keep, or nothing.
function exit_policy.after_block(exit, pair, pool, at, leased_at, retry_after, dice)
  pair = pair or exit_policy.new_pair(exit, at)
  if leased_at < pair.blocked_at then
    return pair
  end
  note_answer(exit, at, 0, 1)
  note_works(exit, leased_at)
  if pool.is_gateway then
    exit.session = exit.session + 1
    return nil
  end
  note_answer(pair, at, 0, 1)
  pair.level = math.min(pair.level + 1, POLICY.max_level)
  pair.blocked_at = at
  local full = math.min(POLICY.cool_first * 2 ^ (pair.level - 1), POLICY.cool_limit)
  pair.cool_until = at + math.max(math.floor(full * (0.5 + 0.5 * dice) + 0.5), retry_after)
  return pair
end

function exit_policy.after_fault(exit, at, leased_at, forged)
  if leased_at < exit.out_at then
    return
  end
  exit.faults = exit.faults + 1
  if forged then
    exit.faults = math.max(exit.faults, POLICY.faults_out + 6)
  end
  if exit.faults >= POLICY.faults_out then
    local wait = POLICY.out_first * 2 ^ math.min(exit.faults - POLICY.faults_out, 30)
    exit.out_at, exit.out_until = at, at + math.min(wait, POLICY.out_limit)
  end
end

local function is_among(names, name)
  for _, known in ipairs(names) do
    if known == name then
      return true
    end
  end
  return false
end

-- Returns a new list with one more name: the list of a new record is shared with other records.
local function with_one(names, name)
  local more = {}
  for i, known in ipairs(names) do
    more[i] = known
  end
  more[#more + 1] = name
  return more
end

-- Add a name to those that were noted within `agree_time`: each once, and at most as many as have
-- to agree. Returns the names, and the moment since which they were noted.
local function one_more(names, since, name, at)
  if at >= since + POLICY.agree_time then
    return {name}, at
  end
  local is_enough = is_among(names, name) or #names >= POLICY.agree
  return is_enough and names or with_one(names, name), since
end

-- The host could not be reached by the exit. Returns the pair to keep, and whether the host is to
-- blame.
function exit_policy.after_unreached(exit, pair, lane, host_name, at, leased_at)
  pair = pair or exit_policy.new_pair(exit, at)
  lane.faulty_exits, lane.faulty_since =
    one_more(lane.faulty_exits, lane.faulty_since, exit.id, at)
  if #lane.faulty_exits >= POLICY.agree then
    return pair, true
  end
  exit.faulty_hosts, exit.faulty_since =
    one_more(exit.faulty_hosts, exit.faulty_since, host_name, at)
  if #exit.faulty_hosts >= POLICY.agree then
    exit.faulty_hosts = {}
    exit.faults = math.max(exit.faults, POLICY.faults_out - 1)
    exit_policy.after_fault(exit, at, leased_at)
  elseif leased_at >= pair.blocked_at then
    pair.level = math.min(pair.level + 1, POLICY.max_level)
    pair.blocked_at = at
    local full = POLICY.unreached_first * 2 ^ (pair.level - 1)
    pair.cool_until = at + math.min(full, POLICY.unreached_limit)
  end
  return pair, false
end

local function begin_window(lane, at)
  lane.window_at, lane.answers, lane.blocks, lane.blocked_exits = at, 0, 0, {}
end

-- Count an answer for a lane. Returns whether the site, and not the exit, is now to blame for the
-- blocks.
function exit_policy.count_answer(lane, exit_id, at, is_block, listed)
  if at >= lane.window_at + POLICY.window then
    begin_window(lane, at)
  end
  lane.answers = lane.answers + 1
  if not is_block then
    return false
  end
  lane.blocks = lane.blocks + 1
  local known = lane.blocked_exits
  if #known < POLICY.blocked_exits and not is_among(known, exit_id) then
    lane.blocked_exits = with_one(known, exit_id)
  end
  local is_many = lane.answers >= POLICY.window_answers and lane.blocks * 2 >= lane.answers
  if not is_many or #lane.blocked_exits < math.min(POLICY.blocked_exits, math.max(listed, 1)) then
    return false
  end
  begin_window(lane, at)
  return true
end

function exit_policy.go_up(lane, at)
  lane.tier = lane.tier + 1
  lane.probe_at, lane.good_probes = at + POLICY.probe_every, 0
end

function exit_policy.is_probe(lane, pool_name, tiers, leased_at)
  for at = 1, math.min(lane.tier, #tiers - 1) do
    if tiers[at] == pool_name then
      return leased_at + POLICY.probe_every >= lane.probe_at
    end
  end
  return false
end

function exit_policy.after_probe(lane, at, is_good)
  lane.good_probes = is_good and lane.good_probes + 1 or 0
  if lane.good_probes >= POLICY.good_probes then
    lane.tier, lane.good_probes = math.max(lane.tier - 1, 0), 0
    begin_window(lane, at)
  end
end

-- A pool and the pools to which its tasks may go up, as far as `pool_named` knows them.
function exit_policy.tiers(name, pool_named)
  local found = {name}
  while #found <= POLICY.max_tier do
    local pool = pool_named(found[#found])
    local above = pool and pool.escalate_to or ''
    if above == '' or is_among(found, above) or not pool_named(above) then
      break
    end
    found[#found + 1] = above
  end
  return found
end

local function period_of(pool, at)
  return math.floor(at / pool.budget_period)
end

function exit_policy.may_spend(spent, pool, at)
  if pool.budget == 0 then
    return true
  end
  local used = spent.period == period_of(pool, at) and spent.spent or 0
  return used + (spent.leased + 1) * pool.most_cost <= pool.budget
end

function exit_policy.spend(spent, pool, wire_bytes, at)
  local period = period_of(pool, at)
  if period > spent.period then
    spent.period, spent.spent = period, 0
  end
  local cost = pool.per_request + pool.per_gb * wire_bytes / 1e9
  spent.spent = spent.spent + cost
  spent.total = spent.total + cost
  spent.requests = spent.requests + 1
  spent.wire_bytes = spent.wire_bytes + wire_bytes
end

end
