"""Decisions about exits: when one may be used, which, and what an answer says of it.

Functions of values; no I/O, no clock. Frontiers keep the values and call these (SQLite), or say the
same in their own language (lua/exit_policy.lua) and are held to it by tests in lock step.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from shoal.core.exits import Exit, Lane, Pair, PoolRules, Spent

HALF_LIFE_S = 1800.0
"""Answers and blocks count half after so long: bans are lifted, and addresses change hands."""
PRIOR = 2.0
"""So many answers stand for what is not known yet."""

COOL_FIRST_S = 300.0
COOL_LIMIT_S = 7200.0
MAX_LEVEL = 10

UNREACHED_FIRST_S = 10.0
UNREACHED_LIMIT_S = 600.0
"""How long a pair cools down where the exit could not reach the host."""

FAULTS_OUT = 3
"""Transport faults in a row that put an exit out."""
OUT_FIRST_S = 10.0
OUT_LIMIT_S = 600.0

AGREE_S = 60.0
AGREE = 3
"""If so many exits cannot reach a host within this time, it is the host; if an exit cannot reach so
many hosts, it is the exit."""

WINDOW_S = 60.0
WINDOW_ANSWERS = 10
BLOCKED_EXITS = 3
"""If half of so many answers within this time are blocks, met by so many exits, it is the site."""
SITE_S = 300.0
"""So long a block is taken for the word of the site, then exits are to blame again."""

PROBE_EVERY_S = 600.0
GOOD_PROBES = 5
MAX_TIER = 3

PAIR_KEPT_S = 86_400.0
"""A pair that was not used for so long, since it could be, says nothing any more: its answers have
faded, and a level of yesterday is no reason to be careful today."""

SWEEP_EVERY_S = 60.0
"""So often exits are taken back from crawls that nobody works on any more, and pairs removed that
say nothing."""

RETRY_S = 1.0
"""After so long a task that was blocked may be tried by another exit."""
TURN_S = 1e-6
"""So much later, for each request in flight by it, an exit counts as used."""

EXITS_SEEN = 200
"""So many exits of a pool are looked at for one that may be used at a host."""
TASKS_SEEN = 8
"""So many tasks of a lane are looked at for one that was not blocked by the exit before."""
LANES_SEEN = 200
"""So many lanes of a pool are looked at for one that can be served."""
BUSY_WAIT_S = 0.25
"""A lane whose exits are all busy is looked at again after so long."""
UNSEEN_S = 60.0
"""If nobody has looked at a lane for so long, it was not starved, but its crawl stood still."""
STARVED_BATCH = 100
"""So many tasks of a starved lane die at a time."""


def faded(count: float, since: float, now: float) -> float:
    """What answers of that time count for now."""
    return count * 0.5 ** (max(now - since, 0.0) / HALF_LIFE_S) if count else 0.0


def score(good: float, bad: float, prior: float = 1.0) -> float:
    """The share of answers that were good, where little is known as the prior has it."""
    return (good + PRIOR * prior) / (good + bad + PRIOR)


def score_at(pair: Pair | None, exit_: Exit, now: float) -> float:
    """How well an exit does at a host. What it does elsewhere stands for what is not known yet."""
    good, bad = faded(exit_.good, exit_.scored_at, now), faded(exit_.bad, exit_.scored_at, now)
    prior = score(good, bad)
    if pair is None:
        return prior
    good, bad = faded(pair.good, pair.scored_at, now), faded(pair.bad, pair.scored_at, now)
    return score(good, bad, prior)


def valid_pair(pair: Pair | None, exit_: Exit) -> Pair | None:
    """A pair, if it is of the exit as it is: another session is another address."""
    return pair if pair is not None and pair.session == exit_.session else None


def is_of_session(exit_: Exit, session: int) -> bool:
    """Whether what was lent is still what the exit is. If not, the answer to a request by it says
    nothing of the exit: of a gateway, a block has made it another session meanwhile."""
    return exit_.session == session


def exit_limit(exit_: Exit, rules: PoolRules) -> int:
    """How many requests may be in flight by it: one, if it was out and is tried again."""
    return 1 if exit_.faults >= FAULTS_OUT else rules.concurrency


def exit_ready_at(exit_: Exit, rules: PoolRules) -> float:
    """When an exit may be used, whatever the host. Infinity while it is full or not listed."""
    if not exit_.is_listed or exit_.leased >= exit_limit(exit_, rules):
        return inf
    return max(exit_.next_at, exit_.out_until)


def pair_ready_at(pair: Pair | None) -> float:
    """When an exit may be used at a host, as far as that is about the host. Infinity while the one
    request is in flight that shows whether it is still blocked."""
    if pair is None:
        return 0.0
    if pair.level and pair.is_tried:
        return inf
    return max(pair.next_at, pair.cool_until)


def pair_void_at(pair: Pair, rules: PoolRules | None, now: float) -> float:
    """When a pair that is not used any more says nothing, and may be forgotten."""
    sticks_until = pair.since + rules.sticky_s if rules and pair.since else 0.0
    return max(now, pair.next_at, pair.cool_until, sticks_until) + PAIR_KEPT_S


def is_sticking(pair: Pair | None, rules: PoolRules, now: float) -> bool:
    """Whether a host is still to be visited by this exit before others."""
    return pair is not None and rules.sticky_s > 0 and now < pair.since + rules.sticky_s


def reserve(exit_: Exit, pair: Pair | None, rules: PoolRules, now: float) -> Pair | None:
    """A request goes out by an exit: the next one has to wait. Returns the pair as it is to be
    kept; None if there is nothing to say."""
    exit_.next_at = now + rules.interval_s
    if pair is None:
        if not rules.pair_interval_s:
            return None
        pair = Pair(session=exit_.session, scored_at=now)
    pair.next_at = max(pair.next_at, now + rules.pair_interval_s)
    return pair


def lend(exit_: Exit, pair: Pair | None, rules: PoolRules, now: float) -> Pair | None:
    """Hand an exit out. Returns the pair as it is to be kept; None if there is nothing to say."""
    exit_.leased += 1
    # What is handed out in one step is handed out at one moment: then the least busy is next.
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
    """A lease has ended, one way or another. What is on probation may be tried again."""
    exit_.leased = max(exit_.leased - 1, 0)
    if pair is not None and leased_at >= pair.blocked_at:
        pair.is_tried = False


def after_good(exit_: Exit, pair: Pair | None, now: float, leased_at: float) -> None:
    """The host answered, and not with a block."""
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
    """The host blocked a request by this exit. It cools down there, twice as long as the last time;
    of a gateway, it becomes another session. Returns the pair as it is to be kept.

    The answer to a request that left before the last block says nothing new.
    """
    pair = pair or Pair(session=exit_.session, scored_at=now)
    if leased_at < pair.blocked_at:
        return pair
    _note(exit_, now, bad=1.0)
    if leased_at >= exit_.out_at:
        exit_.faults, exit_.out_until = 0, 0.0  # It works: it brought us the answer.
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
    """An exit could not be used. After a few times in a row it is out for a while, longer each
    time; one that forges certificates is out at once. What left before says nothing new."""
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
    """An exit could not reach a host. Returns the pair as it is to be kept, and whether it is the
    host that is to blame, as several exits agree. If several hosts agree, it is the exit."""
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
    """Count an answer of a host to an exit of the lane's tier. Returns whether the blocks are now
    the site's doing and not the exit's: half of the answers within a minute are blocks, and several
    exits, or all there are, have met them. The count begins anew then."""
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
    """The host blocks the exits of this tier: its tasks use the next."""
    lane.tier += 1
    lane.probe_at, lane.good_probes = now + PROBE_EVERY_S, 0


def is_probe(lane: Lane, pool: str, names: Sequence[str], leased_at: float) -> bool:
    """Whether an answer to an exit of this pool tells of the tiers below the lane's own; `names`
    are its tiers. What left before the lane went up, or before the last probe, tells nothing."""
    below = names[: min(lane.tier, len(names) - 1)]
    return pool in below and leased_at + PROBE_EVERY_S >= lane.probe_at


def after_probe(lane: Lane, now: float, *, is_good: bool) -> None:
    """The tier below was tried. After a few good answers in a row the tasks use it again."""
    lane.good_probes = lane.good_probes + 1 if is_good else 0
    if lane.good_probes >= GOOD_PROBES:
        lane.tier = max(lane.tier - 1, 0)
        lane.good_probes = 0
        lane.window_at, lane.answers, lane.blocks, lane.blocked_exits = now, 0, 0, []


def blocked_wait_s(dice: float) -> float:
    """How long a task waits that was blocked: what was blocked together does not come back so."""
    return RETRY_S * (0.5 + 0.5 * dice)


def tiers(pool: str, rules: dict[str, PoolRules]) -> list[str]:
    """A pool and those that its tasks may go up to, as far as they are known."""
    found = [pool]
    while (at := rules.get(found[-1])) and at.escalate_to and len(found) <= MAX_TIER:
        if at.escalate_to in found or at.escalate_to not in rules:
            break
        found.append(at.escalate_to)
    return found


def starved_reason(
    pool: str, for_s: float, *, listed: int, out: int, cooling: int, may_spend: bool
) -> str:
    """Why a task is dead that no exit could be used for."""
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
    """The number of the period of a budget."""
    return int(now // rules.budget_period_s)


def may_spend(spent: Spent, rules: PoolRules, now: float) -> bool:
    """Whether one more request may leave. All that are in flight are taken to cost the most they
    can: so a budget is never overspent."""
    if not rules.budget:
        return True
    used = spent.spent if spent.period == period_of(rules, now) else 0.0
    return used + (spent.leased + 1) * rules.most_cost <= rules.budget


def spend(spent: Spent, rules: PoolRules, wire_bytes: int, now: float) -> None:
    """A request was sent, and took so much of the network."""
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
    """Names that were noted within a time, and one more: each once, and no more than it takes."""
    if now >= since + AGREE_S:
        return [name], now
    return ([*names, name] if name not in names else list(names))[:AGREE], since
