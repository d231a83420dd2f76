"""How long the rest of a crawl takes, and whether that is too long."""

from __future__ import annotations

import pytest

from shoal.config import Rules
from shoal.coordinator.lateness import lateness, remaining_s
from shoal.frontier.values import CrawlState, Stats

NOW = 1_795_000_000.0


def stats(state: CrawlState = CrawlState.RUNNING, rules: Rules | None = None) -> Stats:
    """A crawl with fifty of a hundred pages done, five a second."""
    return Stats(
        crawl="shop",
        state=state,
        rules=rules or Rules(),
        created_at=NOW,
        pages_per_s=5.0,
        added=100,
        done=50,
        waiting=50,
    )


@pytest.mark.parametrize(
    ("state", "left_s"),
    [
        (CrawlState.RUNNING, 10.0),
        (CrawlState.PAUSED, None),
        (CrawlState.FINISHED, 0.0),
        (CrawlState.CANCELLED, 0.0),
    ],
)
def test_what_is_left_by_state(state: CrawlState, left_s: float | None) -> None:
    assert remaining_s(stats(state)) == left_s


def test_no_more_is_left_than_max_pages_allows() -> None:
    assert remaining_s(stats(rules=Rules(max_pages=60))) == 2.0


def test_late() -> None:
    assert lateness(None, stats(), NOW) is None
    assert lateness(NOW + 60, stats(), NOW) is None
    assert "at this pace it is done" in (lateness(NOW + 5, stats(), NOW) or "")
    assert "50 still to do, at this pace until" in (lateness(NOW - 5, stats(), NOW) or "")
    paused = lateness(NOW - 5, stats(CrawlState.PAUSED), NOW) or ""
    assert paused.endswith("50 still to do")
