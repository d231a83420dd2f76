"""Decisions about exits: which one may be used, when, and what a response says about it.

Functions of values; no I/O, no clock. Frontiers keep the values. SQLite calls these functions;
Redis has the same decisions in lua/exit_policy.lua, and tests run both in lockstep.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from shoal.core.exits import Exit, Lane, Pair, PoolRules, Spent

HALF_LIFE_S = 1800.0
"""After how long responses and blocks count half: bans are lifted, and addresses change hands."""
PRIOR = 2.0
"""How many responses the prior weighs, as long as little is known."""

COOL_FIRST_S = 300.0
COOL_LIMIT_S = 7200.0
MAX_LEVEL = 10

UNREACHED_FIRST_S = 10.0
UNREACHED_LIMIT_S = 600.0
"""How long a pair cools down if the exit could not reach the host: the first time, and at most."""

FAULTS_OUT = 3
"""Transport faults in a row after which an exit is out."""
OUT_FIRST_S = 10.0
OUT_LIMIT_S = 600.0

AGREE_S = 60.0
AGREE = 3
"""If this many exits cannot reach a host within AGREE_S, the host is to blame; if an exit cannot
reach this many hosts, the exit is."""

WINDOW_S = 60.0
WINDOW_ANSWERS = 10
BLOCKED_EXITS = 3
"""If at least WINDOW_ANSWERS responses came within WINDOW_S, half of them are blocks, and this many
exits met them, the site is to blame."""
SITE_S = 300.0
"""How long blocks are blamed on the site; after that, exits are to blame again."""

PROBE_EVERY_S = 600.0
GOOD_PROBES = 5
MAX_TIER = 3

PAIR_KEPT_S = 86_400.0
"""How long a pair is kept after it could last be used. By then its responses have faded, and its
level of yesterday is no reason for caution."""

SWEEP_EVERY_S = 60.0
"""How often pairs without information are removed, and exits of crawls without workers taken
back."""

RETRY_S = 1.0
"""After how long a blocked task may be tried through another exit."""
TURN_S = 1e-6
"""How much later an exit counts as used, for each of its requests in flight."""

EXITS_SEEN = 200
"""How many exits of a pool are examined to find one that may be used at a host."""
TASKS_SEEN = 8
"""How many tasks of a lane are checked for one that this exit has not been blocked with before."""
LANES_SEEN = 200
"""How many lanes of a pool are examined to find one that can be served."""
BUSY_WAIT_S = 0.25
"""When a lane whose exits are all busy is looked at again."""
UNSEEN_S = 60.0
"""A lane that no worker looked at for this long was not starved: its crawl stood still."""
STARVED_BATCH = 100
"""How many tasks of a starved lane die at a time."""


def faded(count: float, since: float, now: float) -> float:
    """The present weight of responses counted at an earlier time."""
    return count * 0.5 ** (max(now - since, 0.0) / HALF_LIFE_S) if count else 0.0


def score(good: float, bad: float, prior: float = 1.0) -> float:
    """The share of good responses; the prior fills in where little is known."""
    return (good + PRIOR * prior) / (good + bad + PRIOR)


def score_at(pair: Pair | None, exit_: Exit, now: float) -> float:
    """How well an exit does at a host. What is unknown is taken from how it does elsewhere."""
    good, bad = faded(exit_.good, exit_.scored_at, now), faded(exit_.bad, exit_.scored_at, now)
    prior = score(good, bad)
    if pair is None:
        return prior
    good, bad = faded(pair.good, pair.scored_at, now), faded(pair.bad, pair.scored_at, now)
    return score(good, bad, prior)


def valid_pair(pair: Pair | None, exit_: Exit) -> Pair | None:
    """The pair, if it belongs to the exit's current session: another session is another address."""
    return pair if pair is not None and pair.session == exit_.session else None


def is_of_session(exit_: Exit, session: int) -> bool:
    """Whether the exit still has the session that was lent.

    If not, the response to that request says nothing about the exit: a block has given the gateway
    another session meanwhile.
    """
    return exit_.session == session


def exit_limit(exit_: Exit, rules: PoolRules) -> int:
    """How many requests may be in flight through an exit: one, if it was out and is tried again."""
    return 1 if exit_.faults >= FAULTS_OUT else rules.concurrency


def exit_ready_at(exit_: Exit, rules: PoolRules) -> float:
    """When an exit may be used, whatever the host. Infinity while it is full or not listed."""
    if not exit_.is_listed or exit_.leased >= exit_limit(exit_, rules):
        return inf
    return max(exit_.next_at, exit_.out_until)


def pair_ready_at(pair: Pair | None) -> float:
    """When an exit may be used at a host, as far as that host decides. Infinity while the single
    request is in flight that shows whether it is still blocked."""
    if pair is None:
        return 0.0
    if pair.level and pair.is_tried:
        return inf
    return max(pair.next_at, pair.cool_until)


def pair_void_at(pair: Pair, rules: PoolRules | None, now: float) -> float:
    """When a pair that is no longer used carries no information any more, and may be deleted."""
    sticks_until = pair.since + rules.sticky_s if rules and pair.since else 0.0
    return max(now, pair.next_at, pair.cool_until, sticks_until) + PAIR_KEPT_S


def is_sticking(pair: Pair | None, rules: PoolRules, now: float) -> bool:
    """Whether a host is still to be visited through this exit before others."""
    return pair is not None and rules.sticky_s > 0 and now < pair.since + rules.sticky_s


def reserve(exit_: Exit, pair: Pair | None, rules: PoolRules, now: float) -> Pair | None:
    """Note that a request leaves through an exit, so that the next one has to wait. Returns the
    pair to store, or None if there is nothing to store."""
    exit_.next_at = now + rules.interval_s
    if pair is None:
        if not rules.pair_interval_s:
            return None
        pair = Pair(session=exit_.session, scored_at=now)
    pair.next_at = max(pair.next_at, now + rules.pair_interval_s)
    return pair


def lend(exit_: Exit, pair: Pair | None, rules: PoolRules, now: float) -> Pair | None:
    """Hand out an exit. Returns the pair to store, or None if there is nothing to store."""
    exit_.leased += 1
    # Exits handed out in one step have the same time. The addition makes the least busy one next.
    exit_.used_at = now + exit_.leased * TURN_S
    pair = reserve(exit_, pair, rules, now)
    if pair is None:
        if not rules.sticky_s:
            return None
        pair = Pair(session=exit_.session, scored_at=now, next_at=now)
    if rules.sticky_s and not is_sticking(pair, rules, now):
        pair.since = now
    pair.is_tried = pair.level > 0
    return pair


def unlend(exit_: Exit, pair: Pair | None, leased_at: float) -> None:
    """Take an exit back at the end of a lease. A pair on probation may then be tried again."""
    exit_.leased = max(exit_.leased - 1, 0)
    if pair is not None and leased_at >= pair.blocked_at:
        pair.is_tried = False


def after_good(exit_: Exit, pair: Pair | None, now: float, leased_at: float) -> None:
    """Note that the host answered, and not with a block."""
    _note(exit_, now, good=1.0)
    if leased_at >= exit_.out_at:
        exit_.faults, exit_.out_until = 0, 0.0
    if pair is not None:
        _note(pair, now, good=1.0)
        if pair.level and leased_at >= pair.blocked_at:
            pair.level //= 2


def after_block(
    exit_: Exit,
    pair: Pair | None,
    rules: PoolRules,
    now: float,
    leased_at: float,
    retry_after_s: float,
    dice: float,
) -> Pair | None:
    """Note that the host blocked a request through this exit. Returns the pair to store, or None.

    The exit cools down at this host, twice as long as the last time; an exit of a gateway becomes
    another session instead. The response to a request that was leased before the last block says
    nothing new.
    """
    pair = pair or Pair(session=exit_.session, scored_at=now)
    if leased_at < pair.blocked_at:
        return pair
    _note(exit_, now, bad=1.0)
    if leased_at >= exit_.out_at:
        exit_.faults, exit_.out_until = 0, 0.0  # It works: it delivered the response.
    if rules.is_gateway:
        exit_.session += 1
        return None
    _note(pair, now, bad=1.0)
    pair.level = min(pair.level + 1, MAX_LEVEL)
    pair.blocked_at = now
    full_s = min(COOL_FIRST_S * 2.0 ** (pair.level - 1), COOL_LIMIT_S)
    pair.cool_until = now + max(full_s * (0.5 + 0.5 * dice), retry_after_s)
    return pair


def after_fault(exit_: Exit, now: float, leased_at: float, *, forged: bool = False) -> None:
    """Note that an exit could not be used.

    After a few faults in a row it is out for a while, longer each time. An exit that forges
    certificates is out at once. A request leased before the exit was last put out says nothing new.
    """
    if leased_at < exit_.out_at:
        return
    exit_.faults += 1
    if forged:
        exit_.faults = max(exit_.faults, FAULTS_OUT + 6)
    if exit_.faults >= FAULTS_OUT:
        wait_s = min(OUT_FIRST_S * 2.0 ** min(exit_.faults - FAULTS_OUT, 30), OUT_LIMIT_S)
        exit_.out_at, exit_.out_until = now, now + wait_s


def after_unreached(
    exit_: Exit, pair: Pair | None, lane: Lane, host: str, now: float, leased_at: float
) -> tuple[Pair, bool]:
    """Note that an exit could not reach a host.

    Returns the pair to store, and whether the host is to blame, which it is if several exits could
    not reach it. If the exit could not reach several hosts, the exit is to blame.
    """
    pair = pair or Pair(session=exit_.session, scored_at=now)
    lane.faulty_exits, lane.faulty_since = _one_more(
        lane.faulty_exits, lane.faulty_since, exit_.id, now
    )
    if len(lane.faulty_exits) >= AGREE:
        return pair, True
    exit_.faulty_hosts, exit_.faulty_since = _one_more(
        exit_.faulty_hosts, exit_.faulty_since, host, now
    )
    if len(exit_.faulty_hosts) >= AGREE:
        exit_.faulty_hosts = []
        exit_.faults = max(exit_.faults, FAULTS_OUT - 1)
        after_fault(exit_, now, leased_at)
    elif leased_at >= pair.blocked_at:
        pair.level = min(pair.level + 1, MAX_LEVEL)
        pair.blocked_at = now
        full_s = min(UNREACHED_FIRST_S * 2.0 ** (pair.level - 1), UNREACHED_LIMIT_S)
        pair.cool_until = now + full_s
    return pair, False


def count_answer(lane: Lane, exit_id: str, now: float, *, is_block: bool, exits: int) -> bool:
    """Count a host's response to an exit of the lane's tier. Returns whether the site is now to
    blame for its blocks, rather than the exits.

    It is if half of the responses within a minute are blocks, and several exits, or all there are,
    have met them. The count then starts again.
    """
    if now >= lane.window_at + WINDOW_S:
        lane.window_at, lane.answers, lane.blocks, lane.blocked_exits = now, 0, 0, []
    lane.answers += 1
    if not is_block:
        return False
    lane.blocks += 1
    if len(lane.blocked_exits) < BLOCKED_EXITS and exit_id not in lane.blocked_exits:
        lane.blocked_exits = [*lane.blocked_exits, exit_id]
    is_many = lane.answers >= WINDOW_ANSWERS and lane.blocks * 2 >= lane.answers
    if not is_many or len(lane.blocked_exits) < min(BLOCKED_EXITS, max(exits, 1)):
        return False
    lane.window_at, lane.answers, lane.blocks, lane.blocked_exits = now, 0, 0, []
    return True


def go_up(lane: Lane, now: float) -> None:
    """Move the host's tasks up to the next tier, as the host blocks the exits of this one."""
    lane.tier += 1
    lane.probe_at, lane.good_probes = now + PROBE_EVERY_S, 0


def is_probe(lane: Lane, pool: str, names: Sequence[str], leased_at: float) -> bool:
    """Whether a response to an exit of this pool tells about the tiers below the lane's own.
    `names` are the lane's tiers.

    A request leased before the lane went up, or before the last probe, tells nothing.
    """
    below = names[: min(lane.tier, len(names) - 1)]
    return pool in below and leased_at + PROBE_EVERY_S >= lane.probe_at


def after_probe(lane: Lane, now: float, *, is_good: bool) -> None:
    """Note that the tier below was tried. After a few good responses in a row, it is used again."""
    lane.good_probes = lane.good_probes + 1 if is_good else 0
    if lane.good_probes >= GOOD_PROBES:
        lane.tier = max(lane.tier - 1, 0)
        lane.good_probes = 0
        lane.window_at, lane.answers, lane.blocks, lane.blocked_exits = now, 0, 0, []


def blocked_wait_s(dice: float) -> float:
    """How long a blocked task waits. Random, so that tasks blocked together return separately."""
    return RETRY_S * (0.5 + 0.5 * dice)


def tiers(pool: str, rules: dict[str, PoolRules]) -> list[str]:
    """A pool, and the pools to which its tasks may escalate, as far as they are known."""
    found = [pool]
    while (at := rules.get(found[-1])) and at.escalate_to and len(found) <= MAX_TIER:
        if at.escalate_to in found or at.escalate_to not in rules:
            break
        found.append(at.escalate_to)
    return found


def starved_reason(
    pool: str, for_s: float, *, listed: int, out: int, cooling: int, may_spend: bool
) -> str:
    """Why a task died for which no exit could be used."""
    if not may_spend:
        state = "budget spent"
    elif not listed:
        state = "it has no exits"
    else:
        others = listed - out - cooling
        counts = ((out, "out"), (cooling, "cooling here"), (others, "tried before"))
        parts = [f"{listed} exit" + "s" * (listed != 1), *(f"{n} {how}" for n, how in counts if n)]
        state = ", ".join(parts)
    return f"no exit of pool {pool} could be used for {span(for_s)}: {state}"


def span(seconds: float) -> str:
    """A time span in its largest whole unit: 1h, 90m, 45s."""
    whole = round(seconds)
    for unit, unit_s in (("d", 86_400), ("h", 3600), ("m", 60)):
        if whole and whole % unit_s == 0:
            return f"{whole // unit_s}{unit}"
    return f"{whole}s"


def period_of(rules: PoolRules, now: float) -> int:
    """The number of the budget's current period."""
    return int(now // rules.budget_period_s)


def may_spend(spent: Spent, rules: PoolRules, now: float) -> bool:
    """Whether one more request may leave. Each request in flight is assumed to cost the most it
    can, so a budget is never overspent."""
    if not rules.budget:
        return True
    used = spent.spent if spent.period == period_of(rules, now) else 0.0
    return used + (spent.leased + 1) * rules.most_cost <= rules.budget


def spend(spent: Spent, rules: PoolRules, wire_bytes: int, now: float) -> None:
    """Account for a request that was sent, and for its bytes on the wire."""
    period = period_of(rules, now)
    if period > spent.period:
        spent.period, spent.spent = period, 0.0
    cost = rules.per_request + rules.per_gb * wire_bytes / 1e9
    spent.spent += cost
    spent.total += cost
    spent.requests += 1
    spent.wire_bytes += wire_bytes


def _note(of: Exit | Pair, now: float, good: float = 0.0, bad: float = 0.0) -> None:
    of.good = faded(of.good, of.scored_at, now) + good
    of.bad = faded(of.bad, of.scored_at, now) + bad
    of.scored_at = now


def _one_more(names: Sequence[str], since: float, name: str, now: float) -> tuple[list[str], float]:
    """The names noted within AGREE_S, with one more: each once, and no more than `AGREE`. Also
    returns when the first of them was noted."""
    if now >= since + AGREE_S:
        return [name], now
    return ([*names, name] if name not in names else list(names))[:AGREE], since
