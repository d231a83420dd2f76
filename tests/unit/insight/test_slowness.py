"""The line of progress says why a crawl is not faster."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.config import Rules
from shoal.core.failures import FailureKind
from shoal.core.ledger import SlotTime
from shoal.fleet.looking import Glance
from shoal.frontier.values import CrawlState, Host, Stats
from shoal.insight.slowness import why_slow

NOW = 1000.0
POLITE = SlotTime(fetch=1.0, polite=9.0)
STARVED = SlotTime(fetch=1.0, starved=9.0)
READY = Host(host="a.example", waiting=5, next_at=NOW + 0.5)
ALSO_READY = Host(host="b.example", waiting=5, next_at=NOW)
PAUSED = Host(
    host="shop.example",
    waiting=9,
    next_at=NOW + 32,
    penalty_s=60,
    failures_by_kind={FailureKind.STATUS_5XX: 7, FailureKind.TIMEOUT: 1},
)
SLOW_BY_WISH = Host(host="slow.example", waiting=9, next_at=NOW + 20, crawl_delay_s=20)
BROKEN = Host(host="down.example", waiting=9, next_at=NOW + 1, failures=12)
DRY = Host(host="carried.example", waiting=9, next_at=NOW, dry_s=5)
EMPTY = Host(host="done.example", next_at=NOW + 100)


def seen(
    slots: SlotTime,
    *hosts: Host,
    rules: Rules | None = None,
    state: CrawlState = CrawlState.RUNNING,
    awaited: list[str] | None = None,
    **counts: Any,
) -> Glance:
    stats = Stats(crawl="shop", state=state, rules=rules or Rules(), created_at=0.0, **counts)
    return Glance(
        stats=stats,
        at=NOW,
        slots=slots,
        hosts=list(hosts),
        store="PostgreSQL",
        awaited=awaited or [],
    )


@pytest.mark.parametrize(
    ("look", "why"),
    [
        (seen(SlotTime(fetch=8.0, parse=1.0, polite=1.0), READY), ""),
        (seen(SlotTime(), READY), ""),
        (seen(POLITE, PAUSED, state=CrawlState.PAUSED), ""),
        (seen(POLITE, READY, missing=1200), "1,200 tasks are missing in the broker"),
        (seen(SlotTime(fetch=8.0, polite=1.0), READY, missing=1200), ""),
        (seen(POLITE, READY, EMPTY), "a.example at its rate (1/s)"),
        (seen(POLITE, READY, ALSO_READY), "all hosts at their rate (1/s)"),
        (seen(POLITE, READY, PAUSED), "a.example at its rate (1/s)"),
        (seen(POLITE, READY, rules=Rules(rate="none")), "a.example busy (16 at once)"),
        (seen(POLITE, PAUSED), "shop.example paused 32s after status_5xx"),
        (
            seen(POLITE, PAUSED, SLOW_BY_WISH),
            "slow.example waits 20s (Crawl-delay), and 1 other",
        ),
        (seen(POLITE, BROKEN), "down.example keeps failing: only probed"),
        (seen(POLITE, DRY, EMPTY), "waiting for the broker"),
        (seen(POLITE, DRY, PAUSED), "waiting for the broker"),
        (seen(POLITE, DRY, READY), "a.example at its rate (1/s)"),
        (seen(POLITE, EMPTY, rules=Rules(pools=("dc",)), waiting=1), "waiting for exits"),
        (seen(POLITE, rules=Rules(sessions=("shop",)), waiting=1), "waiting for accounts"),
        (seen(POLITE, waiting=1), "each chain waits for its last task"),
        (seen(POLITE, EMPTY, delayed=2), "2 tasks wait until they may be sent"),
        (seen(SlotTime(stores=9.0)), "waiting for PostgreSQL"),
        (seen(SlotTime(fetch=9.0), awaited=["results store"]), "waiting for PostgreSQL"),
        (seen(SlotTime(fetch=9.0), awaited=["archive"]), "waiting for the archive"),
        (seen(SlotTime(frontier=9.0)), "waiting for the frontier"),
        (seen(STARVED, delayed=3), "3 tasks wait until they may be sent"),
        (seen(STARVED, PAUSED, EMPTY, delayed=1), "shop.example paused 32s after status_5xx"),
        (seen(STARVED, delayed=1), "1 task waits until it may be sent"),
        (seen(STARVED, leased=2), "the last pages are under way"),
        (seen(STARVED, waiting=2), ""),
        (seen(STARVED), ""),
    ],
)
def test_why(look: Any, why: str) -> None:
    assert why_slow(look) == why
