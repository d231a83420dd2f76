"""Random histories of crawls through exits, for two frontiers that must behave alike.

Nothing may depend on choices that a frontier is free to make. So either two crawls share the exits,
and each has one host and one lane, whose tasks have different priorities: then it is certain which
task gets which exit. Or hosts, pools and tasks without a pool are mixed: then nothing holds an exit
back, and each pool has only one. A frontier may also choose which of several suspects is tried
first; here no task becomes a suspect.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from shoal.config import Rules
from shoal.core.exits import Blame, ExitEntry, Passage, PoolRules
from shoal.frontier.values import Entry, Pushback, Verdict
from support.exits import DC, RES, laned, listed
from support.frontiers import entry, open_rules

CRAWLS = ("crawl", "other")
POOLS = (DC, RES)
WORKERS = ("one", "two")
MANY = 50
LEASE_S = 100_000.0
"""So long that no lease expires: expired leases of a crawl without a worker are taken back by other
crawls now and then, and it is not specified when."""
TASKS = 10
CHAINED = (3, 4, 6)
TIMEOUT_S = 97.3
STEPS_S = [0.0131, 0.2703, 1.0071, 5.1013, 17.3057, 47.1011, 161.7023, 611.3011]
"""Odd numbers, so that rounding cannot decide whether a deadline is reached."""


def _fields(number: int) -> dict[str, Any]:
    return {"priority": number, "chain": "steps" if number in CHAINED else None}


def _mixed(crawl: str, number: int) -> Entry:
    """A task of one of two hosts, with one of the pools or none."""
    address = f"{crawl}-{number % 2}.example/{number}"
    pool = (DC, RES, None)[number % 3]
    fields = {"priority": number}
    return laned(address, pool, **fields) if pool else entry(address, **fields)


ONE_LANE = {
    crawl: [laned(f"{crawl}.example/{n}", **_fields(n)) for n in range(TASKS)] for crawl in CRAWLS
}
MIXED = {crawl: [_mixed(crawl, n) for n in range(TASKS)] for crawl in CRAWLS}

rules_of_one = st.builds(
    open_rules,
    rate=st.sampled_from(["none", "none", "1/s"]),
    concurrency_per_host=st.sampled_from([1, 3, MANY]),
    robots=st.sampled_from([False, False, True]),
    pools=st.just(POOLS),
    lease_s=st.just(LEASE_S),
    max_losses=st.just(2),
)
RULES_OF_MIXED: Rules = open_rules(
    pools=POOLS, concurrency_per_host=MANY, lease_s=LEASE_S, max_losses=2
)

pools_of_one = st.builds(
    PoolRules,
    name=st.sampled_from([DC, DC, RES]),
    rotation=st.sampled_from(["rested", "best"]),
    sticky_s=st.sampled_from([0.0, 0.0, 90.9]),
    interval_s=st.sampled_from([0.0, 0.0, 0.7]),
    pair_interval_s=st.sampled_from([0.0, 0.0, 2.3]),
    concurrency=st.sampled_from([1, 2, 8]),
    escalate_to=st.sampled_from(["", RES, RES, DC]),
    allow_direct=st.sampled_from([False, False, False, True]),
    timeout_s=st.just(TIMEOUT_S),
    is_gateway=st.sampled_from([False, False, True]),
    per_gb=st.sampled_from([0.0, 300.3]),
    per_request=st.sampled_from([0.0, 1.25]),
    budget=st.sampled_from([0.0, 0.0, 6.1]),
    budget_period_s=st.just(977.7),
    most_bytes=st.just(1_000_000),
)
pools_of_mixed = st.builds(
    PoolRules,
    name=st.sampled_from(POOLS),
    concurrency=st.just(1000),
    allow_direct=st.booleans(),
    timeout_s=st.just(TIMEOUT_S),
)
exit_counts = st.sampled_from([0, 1, 2, 3, 3, 4, 4])

_blocks = st.builds(
    Passage,
    block=st.just("challenge"),
    retry_after_s=st.sampled_from([0.0, 0.0, 33.3, 444.4]),
    dice=st.sampled_from([0.0, 0.25, 0.875]),
)
_waits = st.sampled_from([0.0, 2.2, 30.3])
_bytes = st.sampled_from([0, 1000, 700_000])
good_ends = st.fixed_dictionaries(
    {
        "verdict": st.sampled_from([Verdict.DONE, Verdict.RETRY, Verdict.DEAD, Verdict.DROPPED]),
        "passage": st.just(Passage()),
        "retry_in_s": _waits,
        "wire_bytes": _bytes,
        "latency_s": st.sampled_from([0.0, 0.31]),
        "pushback": st.none() | st.none() | st.builds(Pushback),
        "fault": st.sampled_from([False, False, True]),
    }
)
block_ends = st.fixed_dictionaries(
    {
        "verdict": st.sampled_from([Verdict.RETRY, Verdict.RETRY, Verdict.DEAD]),
        "passage": _blocks,
        "retry_in_s": _waits,
        "wire_bytes": _bytes,
        "blocked": st.just(1),
        "reason": st.just("blocked"),
    }
)
fault_ends = st.fixed_dictionaries(
    {
        "verdict": st.just(Verdict.RETURNED),
        "sent": st.just(False),
        "passage": st.builds(
            Passage, blame=st.sampled_from([Blame.EXIT, Blame.EXIT, Blame.FORGED])
        ),
    }
)
unreached_ends = st.fixed_dictionaries(
    {
        "verdict": st.just(Verdict.RETRY),
        "passage": st.just(Passage(blame=Blame.PAIR)),
        "retry_in_s": _waits,
    }
)
silent_ends = st.fixed_dictionaries(
    {
        "verdict": st.sampled_from([Verdict.RETURNED, Verdict.RETURNED, Verdict.DONE]),
        "sent": st.booleans(),
    }
)
ends = good_ends | block_ends | block_ends | fault_ends | unreached_ends | silent_ends
some_ends = st.lists(ends, min_size=1, max_size=6)
kinds_of_ends = st.sampled_from([good_ends, block_ends, fault_ends, unreached_ends])


def entries_of(pool: str, count: int, *, is_mixed: bool) -> list[ExitEntry]:
    """The exits of a pool: at most one if mixed, where several hosts would compete for them."""
    return listed(min(count, 1) if is_mixed else count, pool)
