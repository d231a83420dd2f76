-- Takes back leases of workers that died. Needs step.lua, shares.lua, hosts.lua, queue.lua,
-- chains.lua.

-- Take back a lease whose worker is gone. A task that too many workers died with is dead as poison.
local function lose(token, packed)
  end_lease(token)
  local host_name, priority, entry, worker, _, _, is_shared = values_of(packed)
  local host = host_named(host_name)
  host.leased = host.leased - 1
  if is_shared then
    note_shared(host_name, -1) -- The share stays: the worker's requests may still be at the host.
  end
  counts.leased = counts.leased - 1
  counts.lost = counts.lost + 1
  note_holding(worker, -1)
  local losses = losses_of(entry) + 1
  entry = with_counts(entry, attempts_of(entry), losses)
  if losses >= rules.max_losses then
    keep_as_dead(host, priority, entry, KINDS.poison, TEXTS.poison:format(losses), '')
    leave_chain(entry)
  else
    enqueue('LPUSH', host, priority, entry)
  end
end
