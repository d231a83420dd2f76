-- Ends tries that were made with an account. Needs lane_finishing.lua, identities.lua.

do

local plain_end_try, plain_tiers = end_try, lanes.tiers

-- As without accounts, but the exits of a group are those of the pool that it uses, and there is no
-- pool above that.
function lanes.tiers(lane)
  local group = identities.is_ours(lane.pool) and exits.pool(lane.group)
  return group and {group.through} or plain_tiers(lane)
end

local function wire_bytes_of(outcome)
  for i, name in ipairs(PAGE_COUNTERS) do
    if name == 'wire_bytes' then
      return outcome.counts[i]
    end
  end
  return 0
end

-- Apply the report about an account, which is as it was lent: only the holder of the lease has it.
local function apply_report(exit, outcome)
  local report = outcome.identity
  if outcome.sent then
    exits.count(exit, wire_bytes_of(outcome))
  end
  if report then
    identity_policy.after_report(exit.account, exit, report, exits.now)
    identities.keep_jar(exit, report.jar)
  end
  identities.touch(exit)
end

function end_try(outcome, task, token)
  plain_end_try(outcome, task, token)
  local lent = task[9]
  if not lent then
    return
  end
  local has_it = lent[1] ~= '' -- '': it was taken back, and another worker may have it.
  if has_it then
    apply_report(exits.named(lent[1]), outcome)
  end
  local is_over = outcome.verdict ~= 'retry' and outcome.verdict ~= 'returned'
  local has_expired = has_it and outcome.identity and outcome.identity.change == 'out'
  if is_over and lent[5] > 0 then
    call('HDEL', prefix .. 'expired', fingerprint_of(task[3]))
  elseif has_expired and not is_over then
    call('HINCRBY', prefix .. 'expired', fingerprint_of(task[3]), 1)
  end
end

end
