-- Which worker may use an account, and what a login, or the end of one, does to it: the decisions
-- of identity_policy.py, here where they can be atomic. A test compares them with that file. Needs
-- exit_policy.lua.

local identity_policy = {}

do

function identity_policy.may_use(account, exit, worker)
  return exit.leased == 0 or account.is_in and account.worker == worker
end

function identity_policy.ready_at(account, exit, pool)
  if exit.leased > 0 and not account.is_in then
    return math.huge
  end
  return exit_policy.exit_ready_at(exit, pool)
end

function identity_policy.rank_at(account, exit)
  return exit.used_at + (account.is_in and 0 or POLICY.logged_out_rank)
end

function identity_policy.is_bound(account, through, pair, at)
  if not through or account.through == '' or not through.is_listed then
    return false
  end
  local is_cooling = pair and pair.cool_until > at
  return through.session == account.through_session and through.out_until <= at and not is_cooling
end

function identity_policy.bind(account, through)
  if account.through ~= through.id or account.through_session ~= through.session then
    account.through, account.through_session = through.id, through.session
    account.is_in = false
  end
end

function identity_policy.lend(account, worker)
  account.worker = worker
end

function identity_policy.unlend(account, exit)
  if exit.leased == 0 then
    account.worker = ''
  end
end

function identity_policy.after_loss(exit, at)
  exit.out_until = math.max(exit.out_until, at + POLICY.lost_rest)
end

local changes = {}

function changes.none() end

changes['in'] = function(account, exit, report, at)
  account.is_in, account.is_banned, account.failures, account.why = true, false, 0, ''
  account.logins, account.login_at = account.logins + 1, at
  account.user_agent, account.login_url = report.user_agent or '', report.login_url or ''
  exit.out_until = 0
end

function changes.out(account)
  account.expired = account.expired + (account.is_in and 1 or 0)
  account.is_in = false
end

function changes.failed(account, exit, report, at)
  account.is_in, account.failures = false, account.failures + 1
  account.why = report.reason or ''
  account.is_banned = account.failures > #POLICY.login_rests
  local rest = account.is_banned and POLICY.banned or POLICY.login_rests[account.failures]
  exit.out_until = at + rest
end

function changes.cut(_, exit, _, at)
  identity_policy.after_loss(exit, at)
end

function identity_policy.after_report(account, exit, report, at)
  changes[report.change](account, exit, report, at)
end

function identity_policy.forget_login(account, exit)
  account.is_in, account.is_banned, account.failures, account.why = false, false, 0, ''
  exit.out_until = 0
end

function identity_policy.hold(exit, until_)
  exit.next_at = until_
end

function identity_policy.is_held(exit, at)
  return exit.next_at > at
end

function identity_policy.is_hold(exit, until_, at)
  return identity_policy.is_held(exit, at) and exit.next_at == until_
end

function identity_policy.let_go(account, exit, report, at)
  exit.next_at = 0
  if report.change == 'out' then
    identity_policy.forget_login(account, exit)
  else
    identity_policy.after_report(account, exit, report, at)
  end
end

end
