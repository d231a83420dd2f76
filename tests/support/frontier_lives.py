"""Random histories of a crawl, for two frontiers that must behave alike.

Every task of a host has a priority of its own, and all hosts are asked at once unless there is only
one. So the next task never depends on choices that a frontier is free to make. Some tasks belong to
chains.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from msgspec.structs import replace

from shoal.core.records import Robots
from shoal.frontier.values import Holding, Pushback, Record, TaskState, Verdict
from support.frontiers import entry, open_rules

HOSTS = 3
MANY = 50
CHAINED: dict[int, dict[str, Any]] = {
    1: {"chain": "across"},
    2: {"chain": "across", "redirects": ["http://from.example/"]},
    4: {"chain": "across"},
}
"""Fields of the tasks with these priorities: they belong to one chain, whatever their host."""
ENTRIES = [
    entry(f"h{host}.example/{priority}", priority=priority, **CHAINED.get(priority, {}))
    for host in range(HOSTS)
    for priority in range(5)
]
KEYS = [each.fingerprint for each in ENTRIES]
WORKERS = ["one", "two"]
LEASE_S = 4.0
STEPS_S = [0.0131, 0.2503, 1.0071, 2.5119, 5.1013, 17.3057, 61.7023]
"""Odd numbers, so that rounding cannot decide whether a deadline is reached: SQLite counts in
floats, Redis in microseconds."""
A_MOMENT = 1e9
"""Any larger number is a point in time."""
KEPT_LESS_OF = (TaskState.DONE, TaskState.DROPPED)

rules_of_many = st.builds(
    open_rules,
    rate=st.sampled_from(["1/s", "none", "auto"]),
    concurrency_per_host=st.integers(1, 3),
    robots=st.booleans(),
    lease_s=st.just(LEASE_S),
    max_losses=st.sampled_from([1, 2]),
)
rules_of_one = st.builds(replace, rules_of_many, max_pages=st.sampled_from([None, 2, 7]))
"""Rules that may limit pages, for one host: only then is it certain which pages come first."""
robots_texts = st.builds(
    Robots,
    text=st.sampled_from(["", "User-agent: *"]),
    ttl_s=st.sampled_from([3.3, 900.0]),
    crawl_delay_s=st.sampled_from([0.0, 0.7, 3.3]),
    error=st.sampled_from(["", "no answer"]),
    location=st.sampled_from(["", "http://h0.example/elsewhere"]),
)
ends = st.fixed_dictionaries(
    {
        "verdict": st.just(Verdict.DONE) | st.sampled_from(Verdict),
        "retry_in_s": st.sampled_from([0.0, 2.2, 30.3]),
        "sent": st.just(True) | st.booleans(),
        "fault": st.just(False) | st.booleans(),
        "ours": st.booleans(),
        "blocked": st.booleans(),
        "unchanged": st.booleans(),
        "latency_s": st.sampled_from([0.0, 0.05, 0.31, 2.7, 400.0]),
        "pushback": st.none()
        | st.builds(
            Pushback, retry_after_s=st.sampled_from([None, 5.3, 90.9]), meant=st.booleans()
        ),
        "robots": st.none() | robots_texts,
        "follow_ups": st.lists(st.sampled_from(ENTRIES), max_size=3),
        "reason": st.sampled_from(["", "because"]),
        "detail": st.sampled_from(["", "Traceback"]),
        "filtered": st.integers(0, 2),
        "duplicates": st.integers(0, 2),
        "items": st.integers(0, 2),
        "rejected": st.integers(0, 2),
        "body_bytes": st.integers(0, 2),
    }
)


def possible(end: dict[str, Any]) -> dict[str, Any]:
    """The end without a pushback if nothing was sent: the host cannot have pushed back then."""
    return end if end["sent"] else end | {"pushback": None}


some_ends = st.lists(ends.map(possible), min_size=1, max_size=4)
some_holdings = st.dictionaries(
    st.sampled_from([f"h{host}.example" for host in range(HOSTS)]),
    st.builds(Holding, in_flight=st.integers(0, 2), unsent=st.integers(0, 3)),
    max_size=HOSTS,
)
"""What a worker reports of its shares, whether true or not."""
some_keys = st.none() | st.lists(st.sampled_from(KEYS), max_size=3)
FAILURE = {
    "verdict": Verdict.RETRY,
    "fault": True,
    "latency_s": 0.1,
    "pushback": Pushback(meant=False),
}


def rounded(value: Any) -> Any:
    """A value for comparison: times must agree within a millisecond, other floats within a
    millisecond or a thousandth."""
    if isinstance(value, float):
        return pytest.approx(value, abs=1e-3, rel=0.0 if value > A_MOMENT else 1e-3)
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def told(record: Record | None) -> Any:
    """The fields of a task's record that every frontier must have."""
    if record is None:
        return None
    known = [record.state, record.worker, record.due or 0.0]
    if record.state not in KEPT_LESS_OF:
        known += [record.task.retry_count, record.losses]
    if record.state in (TaskState.DEAD, TaskState.DROPPED):
        known.append(record.reason)
    if record.state is TaskState.WAITING:
        known.append("chain" in record.reason)
    return known
