"""Decisions about identities: who may use one, and what a login, or its end, makes of it.

Functions of values; no I/O, no clock. Frontiers keep the values and call these (SQLite), or say the
same in their own language (lua/identity_policy.lua) and are held to it by tests.
"""

from __future__ import annotations

from math import inf

from shoal.core.exit_policy import exit_ready_at, span
from shoal.core.exits import Exit, Pair, PoolRules
from shoal.core.identities import AccountState, IdentityReport, LoginChange

RESTS_S = (60.0, 300.0, 1800.0)
"""How long an account rests after its first, second and third login that failed in a row. After
another one it is banned: whoever goes on trying passwords is taken for a thief."""
BANNED_S = 10 * 365 * 86_400.0
"""So long a banned account rests, unless somebody logs it out or checks it."""
LOST_REST_S = 5.0
"""So long an account rests whose worker has died, or has given up its request: the site may still
be at work on that."""
MAX_EXPIRED = 2
"""So often a task is sent back because its session has ended. The next time it is dead: some page
ends every session, or was never meant for this account."""
LOGGED_OUT_RANK_S = 1e10
"""Accounts that are logged out go behind all others: a login is needless while one is free."""


def may_use(state: AccountState, exit_: Exit, worker: str) -> bool:
    """Whether a worker may use an account beside what is in flight with it: only who has that, and
    nobody while it is to log in."""
    return exit_.leased == 0 or (state.is_in and state.worker == worker)


def ready_at(state: AccountState, exit_: Exit, rules: PoolRules) -> float:
    """When an account may be used by somebody. Infinity while that is no question of time."""
    if exit_.leased and not state.is_in:
        return inf
    return exit_ready_at(exit_, rules)


def rank_at(state: AccountState, exit_: Exit) -> float:
    """Where an account stands among those that may be used: the lowest goes first."""
    return exit_.used_at + (0.0 if state.is_in else LOGGED_OUT_RANK_S)


def is_bound(state: AccountState, through: Exit | None, pair: Pair | None, now: float) -> bool:
    """Whether an account still goes by the exit it is bound to: not if that is gone or out, cools
    down at the host, or has become another address."""
    if through is None or not state.through or not through.is_listed:
        return False
    is_cooling = pair is not None and pair.cool_until > now
    return through.session == state.through_session and through.out_until <= now and not is_cooling


def bind(state: AccountState, through: Exit) -> None:
    """From now on it goes by this exit. From another address, it has to log in anew."""
    if (state.through, state.through_session) != (through.id, through.session):
        state.through, state.through_session = through.id, through.session
        state.is_in = False


def lend(state: AccountState, worker: str) -> None:
    """A worker uses it."""
    state.worker = worker


def unlend(state: AccountState, exit_: Exit) -> None:
    """A lease has ended, one way or another; the exit knows by now. The last one sets it free."""
    if exit_.leased == 0:
        state.worker = ""


def after_loss(exit_: Exit, now: float) -> None:
    """The worker that used it is gone, or has given up."""
    exit_.out_until = max(exit_.out_until, now + LOST_REST_S)


def after_report(state: AccountState, exit_: Exit, report: IdentityReport, now: float) -> None:
    """What a try, or a person, says of an account."""
    match report.change:
        case LoginChange.IN:
            state.is_in, state.is_banned, state.failures, state.why = True, False, 0, ""
            state.logins += 1
            state.login_at = now
            state.user_agent, state.login_url = report.user_agent, report.login_url
            exit_.out_until = 0.0
        case LoginChange.OUT:
            state.expired += state.is_in  # Several in flight may all find it out.
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
    """Somebody has logged it out: it begins anew, without a rest or a ban."""
    state.is_in, state.is_banned, state.failures, state.why = False, False, 0, ""
    exit_.out_until = 0.0


def hold(exit_: Exit, until: float) -> None:
    """Keep an account from everybody. Groups have no pace, so the clock of an account says until
    when it is held, and nobody has to end a hold that was forgotten."""
    exit_.next_at = until


def is_held(exit_: Exit, now: float) -> bool:
    """Whether somebody holds it."""
    return exit_.next_at > now


def is_hold(exit_: Exit, until: float, now: float) -> bool:
    """Whether the hold that was to last until then is the one that lasts. One that follows on
    another lasts longer than that."""
    return is_held(exit_, now) and exit_.next_at == until


def let_go(state: AccountState, exit_: Exit, report: IdentityReport, now: float) -> None:
    """A hold has ended. Who logs an account out by hand wants it to begin anew."""
    exit_.next_at = 0.0
    if report.change is LoginChange.OUT:
        forget_login(state, exit_)
    else:
        after_report(state, exit_, report, now)


def starved_reason(group: str, timeout_s: float, *, listed: int, resting: int, banned: int) -> str:
    """Why a task dies that no account could be used for."""
    head = f"no account of session {group} could be used for {span(timeout_s)}"
    if banned == listed:
        head = f"no account of session {group} can be used"
    if not listed:
        return f"{head}: it has none"
    counts = ((resting, "resting"), (banned, "banned"))
    parts = [f"{listed} account" + "s" * (listed != 1), *(f"{n} {how}" for n, how in counts if n)]
    return f"{head}: {', '.join(parts)}"
