#!lua flags=allow-oom
-- End tries: count them, adjust their hosts' pace, queue their follow-ups, release their leases.
-- Runs also when the server is out of memory: finished work must be able to leave.
--
-- uses     step pace shares hosts seen queue chains adding finishing
-- ARGV[2]  packed {outcome, ...}: names and values, without values that are 0 or empty
-- ARGV[3]  packed {group, ...}: follow-ups of tries on other shards, see adding.lua
-- ARGV...  the owners of the outcomes, see queue.lua; then the entries of all follow-ups, first
--          those of the outcomes, then those of other shards
-- returns  {state, idle, the numbers of the outcomes whose leases were stale, ...}
--
-- Atomic, because a task that ends without its follow-ups being queued would lose them, and
-- follow-ups that are queued twice would be fetched twice.

if not open_plain_crawl() then
  return unknown()
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
    wanted_shares[#wanted_shares + 1] = task[7] and task[1] or nil
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
advance_chains() -- After the follow-ups: the target of a redirect comes before waiting tasks.
save_hosts()
save_own_counts()
close_crawl()
answer[1], answer[2] = state, is_idle()
return answer
