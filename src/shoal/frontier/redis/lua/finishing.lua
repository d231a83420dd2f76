-- Ends tries, for finish.lua. Needs step.lua, pace.lua, shares.lua, hosts.lua, queue.lua,
-- chains.lua.

local function keep_robots(host, outcome, leased_at)
  call('HSET', prefix .. 'robots', host.name, outcome.robots)
  if outcome.elsewhere then
    return -- It is known only after the next lease has fetched it from its new location.
  end
  host.robots_at = now
  host.robots_until = now + (outcome.robots_ttl or 0)
  host.crawl_delay = outcome.crawl_delay or 0
  -- The turn was reserved before the delay was known.
  host.next = math.max(host.next, leased_at + host.crawl_delay)
end

-- Apply what the try tells about its host: robots.txt, pace, a turn that was not used.
local function adjust(host, entry, outcome, leased_at, reserved)
  if outcome.robots then
    keep_robots(host, outcome, leased_at)
  end
  local served, gave_page = false, false
  if outcome.fault then
    after_fault(host, now, leased_at, attempts_of(entry) > 0)
  elseif outcome.sent and outcome.verdict ~= 'returned' and not outcome.is_lost then
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

-- Move a task to where its verdict sends it. Arguments: its host, the place where it waits if it
-- does (the host, or a lane of it), its priority, and its entry, in which a failed try is counted.
local moves = {}

function moves.done(host)
  host.done = host.done + 1
  counts.done = counts.done + 1
end

-- Count a failure of the host, unless it answered as it should and the spider could not handle it.
local function count_failure(host, outcome)
  if outcome.fault or not outcome.ours then
    host.failed = host.failed + 1
  end
end

local function put_off(place, priority, entry, outcome, token)
  counts.delayed = counts.delayed + 1
  local packed = cmsgpack.pack({place.name, priority, entry, token})
  call('ZADD', prefix .. 'delayed', whole(now + (outcome.retry_in or 0)), packed)
end

function moves.retry(host, place, priority, entry, outcome, token)
  count_failure(host, outcome)
  note_failure(outcome.kind, host.name)
  counts.retries = counts.retries + 1
  put_off(place, priority, entry, outcome, token)
end

function moves.dead(host, place, priority, entry, outcome)
  count_failure(host, outcome)
  keep_as_dead(place, priority, entry, outcome.kind, outcome.reason or '', outcome.detail or '')
end

function moves.dropped(_, _, _, entry, outcome)
  counts.dropped = counts.dropped + 1
  call('HSET', prefix .. 'dropped', fingerprint_of(entry), outcome.reason or '')
end

-- A returned task that is not due yet waits until it is.
function moves.returned(_, place, priority, entry, outcome, token)
  if (outcome.retry_in or 0) > 0 then
    put_off(place, priority, entry, outcome, token)
  else
    enqueue('LPUSH', place, priority, entry)
  end
end

-- The spider's own counters, from tries that ended their tasks.
--
-- ID:own_counts  hash  name -> count
local own_counts, has_own_counts = {}, false

local function note_own_counts(counted)
  for name, times in pairs(counted) do
    own_counts[name] = (own_counts[name] or 0) + times
    has_own_counts = true
  end
end

-- Write the spider's own counters. If there are too many names, new ones count as TEXTS.others.
local function save_own_counts()
  if not has_own_counts then
    return
  end
  local key = prefix .. 'own_counts'
  local room = POLICY.max_own_counts - call('HLEN', key)
  for name, times in pairs(own_counts) do
    local is_new = call('HEXISTS', key, name) == 0
    room = is_new and room - 1 or room
    call('HINCRBY', key, is_new and room < 0 and TEXTS.others or name, whole(times))
  end
end

-- End a try: move its task, and count it. If it failed, it counts as `tries` failures.
local function move(host, place, priority, entry, outcome, token, tries)
  if outcome.verdict == 'retry' or outcome.verdict == 'dead' then
    entry = with_counts(entry, attempts_of(entry) + tries, losses_of(entry))
  end
  if outcome.cookies then
    keep_jar(entry, outcome.cookies)
  end
  moves[outcome.verdict](host, place, priority, entry, outcome, token)
  if outcome.verdict ~= 'retry' and outcome.verdict ~= 'returned' then
    leave_chain(entry)
  end
  for i, name in ipairs(PAGE_COUNTERS) do
    local count = outcome.counts[i]
    counts[name] = counts[name] + (count == true and 1 or count or 0) -- `true` counts as one.
  end
  if outcome.sent and outcome.verdict ~= 'returned' then
    counts.sent = counts.sent + 1
  end
  if outcome.own_counts then
    note_own_counts(outcome.own_counts)
  end
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
  move(host, host, priority, entry, outcome, token, 1)
end
