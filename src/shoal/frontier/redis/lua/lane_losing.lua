-- Takes back leases of workers that died, if leases may have exits. Needs losing.lua, lanes.lua.

do

local plain_lose = lose

function lose(token, packed)
  local task = cmsgpack.unpack(packed)
  local lent, dead = task[8], counts.dead
  if lent then
    lanes.look_soon((lanes.let_go(task, true)))
  end
  plain_lose(token, packed)
  if lent and counts.dead > dead then
    lanes.forget_task(fingerprint_of(task[3]))
  end
end

end
