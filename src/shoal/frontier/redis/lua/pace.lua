-- What a try does to its host's pace: the decisions of policy.py, here where they can be atomic.
-- test_frontier_same.py compares them with the SQLite frontier, which uses policy.py itself.

-- Whether a host with this many failures in a row is only probed. Not for ever: a host that stays
-- away is treated like any other in the end, so that its tasks can die and the crawl can finish.
local function is_broken(failures)
  return failures >= POLICY.breaker_after
    and failures < POLICY.breaker_after + POLICY.breaker_probes
end

-- Call it after after_fault: a refusal that is not meant counts only if the host has failed often
-- in a row.
local function after_pushback(host, now, leased_at, retry_after, meant)
  if not meant and host.failures < POLICY.refusals_in_a_row then
    return
  end
  if leased_at >= host.pushed then
    local doubled = math.max(host.penalty * 2, POLICY.pushback_first)
    host.penalty = math.min(doubled, POLICY.pushback_limit)
    host.pushed = now
  end
  host.next = math.max(host.next, now + math.max(host.penalty, retry_after))
end

local function after_success(host, leased_at)
  if host.penalty == 0 or leased_at < host.pushed then
    return
  end
  host.penalty = math.floor(host.penalty * POLICY.recovery_factor)
  if host.penalty < POLICY.penalty_floor then
    host.penalty = 0
  end
end

local function after_success_auto(host, leased_at, latency)
  if leased_at < host.pushed then
    return
  end
  local own = host.penalty > 0 and host.penalty or POLICY.auto_start
  local stepped = math.max(latency, math.floor((own + latency) / 2))
  host.penalty = math.min(math.max(stepped, POLICY.auto_floor), POLICY.pushback_limit)
end

local function after_fault(host, now, leased_at, is_retry)
  if is_retry and not is_broken(host.failures) then
    return
  end
  if host.failures >= POLICY.breaker_after and leased_at < host.broken_at then
    return
  end
  host.failures = host.failures + 1
  if is_broken(host.failures) then
    local wait = POLICY.probe_first * 2 ^ (host.failures - POLICY.breaker_after)
    host.broken_at = now
    host.next = math.max(host.next, now + math.min(wait, POLICY.probe_limit))
  end
end

local function smoothed(average, latency)
  if average == 0 then
    return latency
  end
  return math.floor(average + POLICY.latency_weight * (latency - average))
end
