"""Decisions about identities: which worker may use one, and what a login or its end changes.

Functions of values; no I/O, no clock. Frontiers keep the values. SQLite calls these functions;
Redis has the same decisions in lua/identity_policy.lua, and tests check that they agree.
"""

from __future__ import annotations

from math import inf

from shoal.core.exit_policy import exit_ready_at, span
from shoal.core.exits import Exit, Pair, PoolRules
from shoal.core.identities import AccountState, IdentityReport, LoginChange

RESTS_S = (60.0, 300.0, 1800.0)
"""How long an account rests after its first, second and third failed login in a row. After one more
it is banned: whoever keeps trying passwords looks like a thief."""
BANNED_S = 10 * 365 * 86_400.0
"""How long a banned account rests, unless a person logs it out or checks it."""
LOST_REST_S = 5.0
"""How long an account rests if its worker died or gave up: the site may still process its
request."""
MAX_EXPIRED = 2
"""How often a task is sent back because its session has ended. After that it dies: some page ends
every session, or was never meant for this account."""
LOGGED_OUT_RANK_S = 1e10
"""Puts logged-out accounts behind all others: no login is needed while another account is free."""


def may_use(state: AccountState, exit_: Exit, worker: str) -> bool:
    """Whether a worker may use an account, given its requests in flight: only the worker that has
    those, and none while the account is logging in."""
    return exit_.leased == 0 or (state.is_in and state.worker == worker)


def ready_at(state: AccountState, exit_: Exit, rules: PoolRules) -> float:
    """When some worker may use an account. Infinity if time alone does not decide that."""
    if exit_.leased and not state.is_in:
        return inf
    return exit_ready_at(exit_, rules)


def rank_at(state: AccountState, exit_: Exit) -> float:
    """An account's rank among those that may be used: the lowest goes first."""
    return exit_.used_at + (0.0 if state.is_in else LOGGED_OUT_RANK_S)


def is_bound(state: AccountState, through: Exit | None, pair: Pair | None, now: float) -> bool:
    """Whether an account is still bound to its exit: not if the exit is gone or out, cools down at
    the host, or has become another address."""
    if through is None or not state.through or not through.is_listed:
        return False
    is_cooling = pair is not None and pair.cool_until > now
    return through.session == state.through_session and through.out_until <= now and not is_cooling


def bind(state: AccountState, through: Exit) -> None:
    """Bind an account to an exit. If its address changes, the account has to log in again."""
    if (state.through, state.through_session) != (through.id, through.session):
        state.through, state.through_session = through.id, through.session
        state.is_in = False


def lend(state: AccountState, worker: str) -> None:
    """Note that a worker uses the account."""
    state.worker = worker


def unlend(state: AccountState, exit_: Exit) -> None:
    """Note that a lease has ended, whatever its result. Call it after the exit's own `unlend`. The
    last lease frees the account."""
    if exit_.leased == 0:
        state.worker = ""


def after_loss(exit_: Exit, now: float) -> None:
    """Note that the worker that used the account died, or gave up."""
    exit_.out_until = max(exit_.out_until, now + LOST_REST_S)


def after_report(state: AccountState, exit_: Exit, report: IdentityReport, now: float) -> None:
    """Apply what a try, or a person, reports about an account."""
    match report.change:
        case LoginChange.IN:
            state.is_in, state.is_banned, state.failures, state.why = True, False, 0, ""
            state.logins += 1
            state.login_at = now
            state.user_agent, state.login_url = report.user_agent, report.login_url
            exit_.out_until = 0.0
        case LoginChange.OUT:
            state.expired += state.is_in  # Several requests in flight may report the same.
            state.is_in = False
        case LoginChange.FAILED:
            state.is_in = False
            state.failures += 1
            state.why = report.reason
            state.is_banned = state.failures > len(RESTS_S)
            rest_s = BANNED_S if state.is_banned else RESTS_S[state.failures - 1]
            exit_.out_until = now + rest_s
        case LoginChange.CUT:
            after_loss(exit_, now)


def forget_login(state: AccountState, exit_: Exit) -> None:
    """Start an account anew, without rest or ban, after a person logged it out."""
    state.is_in, state.is_banned, state.failures, state.why = False, False, 0, ""
    exit_.out_until = 0.0


def hold(exit_: Exit, until: float) -> None:
    """Keep an account from all workers until a given time.

    Groups have no pace, so the clock of the account records the hold. A hold that was forgotten
    ends by itself.
    """
    exit_.next_at = until


def is_held(exit_: Exit, now: float) -> bool:
    """Whether the account is held."""
    return exit_.next_at > now


def is_hold(exit_: Exit, until: float, now: float) -> bool:
    """Whether the hold that lasts until then is the current one. A later hold lasts longer."""
    return is_held(exit_, now) and exit_.next_at == until


def let_go(state: AccountState, exit_: Exit, report: IdentityReport, now: float) -> None:
    """End a hold. A person who logs an account out wants it to start anew."""
    exit_.next_at = 0.0
    if report.change is LoginChange.OUT:
        forget_login(state, exit_)
    else:
        after_report(state, exit_, report, now)


def starved_reason(group: str, timeout_s: float, *, listed: int, resting: int, banned: int) -> str:
    """Why a task died for which no account could be used."""
    head = f"no account of session {group} could be used for {span(timeout_s)}"
    if banned == listed:
        head = f"no account of session {group} can be used"
    if not listed:
        return f"{head}: it has none"
    counts = ((resting, "resting"), (banned, "banned"))
    parts = [f"{listed} account" + "s" * (listed != 1), *(f"{n} {how}" for n, how in counts if n)]
    return f"{head}: {', '.join(parts)}"
