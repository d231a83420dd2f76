#!lua flags=allow-oom
-- End tries: count them, adjust their hosts' pace, queue their follow-ups, release their leases.
-- Runs also when the server is out of memory: work that is done must be able to leave.
--
-- uses     step pace shares hosts seen queue chains adding
-- ARGV[2]  packed {outcome, ...}: names and values, without those that are 0 or empty
-- ARGV[3]  packed {group, ...}: follow-ups of tries on other shards, see adding.lua
-- ARGV...  the owners of the outcomes, see queue.lua; then the entries of all follow-ups, first those
--          of the outcomes, then those of other shards
-- returns  {state, idle, the numbers of the outcomes that were no longer owned, ...}
--
-- Atomic, because a task that is done and whose follow-ups are not queued would lose them, and one
-- whose follow-ups are queued twice would be fetched twice.

if not open_crawl() then
  return unknown()
end

local function keep_robots(host, outcome, leased_at)
  call('HSET', prefix .. 'robots', host.name, outcome.robots)
  if outcome.elsewhere then
    return -- Known only when the next lease has fetched it where it is.
  end
  host.robots_at = now
  host.robots_until = now + (outcome.robots_ttl or 0)
  host.crawl_delay = outcome.crawl_delay or 0
  -- The turn was reserved before the delay was known.
  host.next = math.max(host.next, leased_at + host.crawl_delay)
end

-- What the try says of its host: its robots.txt, its pace, a turn that was not used.
local function adjust(host, entry, outcome, leased_at, reserved)
  if outcome.robots then
    keep_robots(host, outcome, leased_at)
  end
  local served, gave_page = false, false
  if outcome.fault then
    after_fault(host, now, leased_at, attempts_of(entry) > 0)
  elseif outcome.sent and outcome.verdict ~= 'returned' then
    host.failures = 0
    served = not outcome.blocked
    gave_page = served and (outcome.verdict == 'done' or outcome.ours)
  end
  if outcome.pushback then
    after_pushback(host, now, leased_at, outcome.retry_after or 0, outcome.meant)
  elseif rules.auto == 1 and gave_page then
    after_success_auto(host, leased_at, outcome.latency or 0)
  elseif rules.auto ~= 1 and served then
    after_success(host, leased_at)
  end
  if outcome.latency then
    host.latency = smoothed(host.latency, outcome.latency)
  end
  if not outcome.sent then
    free_turn(host, leased_at, reserved)
  end
end

local moves = {}

function moves.done(host)
  host.done = host.done + 1
  counts.done = counts.done + 1
end

-- Not where the host sent what it should, and the spider could not read it.
local function count_failure(host, outcome)
  if outcome.fault or not outcome.ours then
    host.failed = host.failed + 1
  end
end

function moves.retry(host, priority, entry, outcome, token)
  count_failure(host, outcome)
  counts.retries = counts.retries + 1
  counts.delayed = counts.delayed + 1
  entry = with_counts(entry, attempts_of(entry) + 1, losses_of(entry))
  local packed = cmsgpack.pack({host.name, priority, entry, token})
  call('ZADD', prefix .. 'delayed', whole(now + (outcome.retry_in or 0)), packed)
end

function moves.dead(host, priority, entry, outcome)
  count_failure(host, outcome)
  entry = with_counts(entry, attempts_of(entry) + 1, losses_of(entry))
  keep_as_dead(host, priority, entry, outcome.reason or '', outcome.detail or '')
end

function moves.dropped(_, _, entry, outcome)
  counts.dropped = counts.dropped + 1
  call('HSET', prefix .. 'dropped', fingerprint_of(entry), outcome.reason or '')
end

function moves.returned(host, priority, entry)
  enqueue('LPUSH', host, priority, entry)
end

local function end_try(outcome, task, token)
  local host_name, priority, entry, worker, leased_at, reserved, is_shared = unpack(task, 1, 7)
  local host = host_named(host_name)
  host.leased = host.leased - 1
  if is_shared then
    note_shared(host_name, -1)
  end
  counts.leased = counts.leased - 1
  note_holding(worker, -1)
  adjust(host, entry, outcome, leased_at, reserved)
  moves[outcome.verdict](host, priority, entry, outcome, token)
  if outcome.verdict ~= 'retry' and outcome.verdict ~= 'returned' then
    leave_chain(entry)
  end
  for i, name in ipairs(PAGE_COUNTERS) do
    local count = outcome.counts[i]
    counts[name] = counts[name] + (count == true and 1 or count or 0) -- What is true counts as one.
  end
  if outcome.sent and outcome.verdict ~= 'returned' then
    counts.sent = counts.sent + 1
  end
end

local outcomes, owners = cmsgpack.unpack(ARGV[2]), {}
local argument = 4 + #outcomes
for i, outcome in ipairs(outcomes) do
  owners[i] = ARGV[3 + i]
  argument = outcome.follow_ups and place_groups(outcome.follow_ups, argument) or argument
end
local others = cmsgpack.unpack(ARGV[3])
place_groups(others, argument)

local ended, groups = {}, {}
local answer = {state, 0}
local held = held_by(owners)
local wanted, wanted_shares, is_wanted = {}, {}, {}
for _, task in ipairs(held) do
  if task and not is_wanted[task[1]] then
    is_wanted[task[1]] = true
    wanted[#wanted + 1] = task[1]
    wanted_shares[#wanted_shares + 1] = task[7] and task[1]
  end
end
read_hosts(wanted)
if #wanted_shares > 0 then
  read_shares(wanted_shares)
end
for i, outcome in ipairs(outcomes) do
  local token = owners[i]:sub(9)
  if held[i] and not ended[token] then
    ended[token] = true
    ended[#ended + 1] = token
    end_try(outcome, held[i], token)
    for _, group in ipairs(outcome.follow_ups or {}) do
      groups[#groups + 1] = group
    end
  else
    answer[#answer + 1] = i
  end
end
call_many('HDEL', prefix .. 'held', ended)
call_many('ZREM', prefix .. 'due', ended)
for _, group in ipairs(others) do
  groups[#groups + 1] = group
end
if state ~= 'cancelled' then
  add_groups(groups)
end
advance_chains() -- After the follow-ups: the target of a redirect comes before what waits.
save_hosts()
close_crawl()
answer[1], answer[2] = state, is_idle()
return answer
