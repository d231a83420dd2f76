"""What `shoal status` shows: what is in the way first, and as much as a terminal has room for."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console, RenderableType

from shoal.cli.status_view import snapshot_view, watched_view
from shoal.config import Rules
from shoal.core.causes import Cause
from shoal.core.ledger import SlotTime, Work
from shoal.frontier.values import CrawlState, Host, Pulse, Stats
from shoal.insight.status import Snapshot

NOW = 1000.0
BUSY = [Host(host=f"{number}.example", waiting=9, next_at=NOW) for number in range(30)]
WAITING = Work(slots=SlotTime(polite=60.0))
WORKERS = [
    Pulse(worker=f"w{n}", host="here", pid=n, version="1", at=NOW, lately=WAITING)
    for n in range(30)
]


def seen(**more: Any) -> Snapshot:
    stats = Stats(crawl="shop", state=CrawlState.RUNNING, rules=Rules(), created_at=0.0, dead=5)
    whole: dict[str, Any] = {"busiest": BUSY, "slowest": [], "failing": [], "workers": WORKERS}
    return Snapshot(stats=stats, **whole | more)


def lines(view: RenderableType) -> list[str]:
    console = Console(width=120, height=24)
    with console.capture() as shown:
        console.print(view)
    return shown.get().splitlines()


def test_what_is_in_the_way_comes_first() -> None:
    shown = lines(snapshot_view(seen(late="late", causes=[Cause(5, "TypeError")]), NOW))
    assert shown[:4] == [
        "shop is late",
        "slow: all hosts at their rate (1/s)",
        "why tasks are dead",
        "5 × TypeError",
    ]
    assert shown[4].strip() == "shop"


def test_tasks_that_are_missing_are_mentioned_once_with_their_remedy() -> None:
    crawl = seen()
    crawl.stats.missing = 7
    shown = [line for line in lines(snapshot_view(crawl, NOW)) if "missing in the broker" in line]
    remedy = "pause the crawl, then shoal seed CRAWL --repair"
    assert shown == [f"7 tasks are missing in the broker: {remedy}"]


def test_each_host_is_shown_once() -> None:
    hosts = {"slowest": BUSY[:3], "failing": [BUSY[0], Host(host="down.example", failed=5)]}
    shown = lines(snapshot_view(seen(**hosts), NOW))
    assert len([line for line in shown if line.startswith(" 0.example")]) == 1
    assert len([line for line in shown if line.startswith(" down.example")]) == 1
    assert "hosts (2 with 100% of all failures)" in shown


@pytest.mark.parametrize("height", [20, 24, 40])
def test_a_terminal_has_room_for_what_changes(height: int) -> None:
    shown = lines(watched_view(seen(), NOW, ["exits: 3 ready"], height))[:height]
    assert shown[0].startswith("shop · 0 pages")
    assert "slow: all hosts at their rate (1/s)" in shown
    assert "exits: 3 ready" in shown
    assert sum(line.startswith(" w") and "orker" not in line for line in shown) >= 3
    assert sum(".example" in line for line in shown) >= 3
