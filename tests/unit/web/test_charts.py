"""Charts as paths, and the speeds they show."""

from __future__ import annotations

import pytest

from shoal.config import Rules
from shoal.frontier.values import CrawlState, Stats
from shoal.web import charts
from shoal.web.recent_speeds import CRAWLS_KEPT, KEPT_S, RecentSpeeds


@pytest.mark.parametrize(
    ("values", "top"),
    [([], 1), ([0.0], 1), ([0.3], 0.5), ([1.0], 1), ([7.2, 3], 10), ([1234], 2000)],
)
def test_the_top_is_a_round_number(values: list[float], top: float) -> None:
    assert charts.ceiling(values) == pytest.approx(top)


def test_a_line_has_gaps_where_nobody_looked() -> None:
    points = [(0.0, 0.0), (10.0, 1.0), (100.0, 2.0), (200.0, 9.0)]

    path = charts.line(points, 0.0, 100.0, 2.0, (100.0, 10.0), gap_s=50.0)

    assert path == "M0.0 10.0L10.0 5.0M100.0 0.0"
    assert charts.area(path, (100.0, 10.0)) == "M0.0 10L0.0 10.0L10.0 5.0L10.0 10Z"


def test_small_charts() -> None:
    assert charts.spark([(5.0, 1.0)], 0.0, 10.0, gap_s=10.0) == ""
    assert charts.spark([(0.0, 0.0), (10.0, 10.0)], 0.0, 10.0, gap_s=10.0) == "M0.0 20.0L80.0 0.0"
    assert charts.bars([1.0, 2.0]).count("Z") == 2
    assert charts.bars([]) == ""


def stats(crawl: str = "shop", done: int = 0) -> Stats:
    return Stats(
        crawl=crawl, state=CrawlState.RUNNING, rules=Rules(), created_at=0.0, done=done, waiting=5
    )


def test_speeds_are_those_between_looks() -> None:
    speeds = RecentSpeeds()
    for at, done in ((0.0, 0), (0.5, 3), (10.0, 20), (20.0, 50)):
        speeds.note(stats(done=done), 1000.0 + at)

    assert [speed.pages_per_s for speed in speeds.of("shop")] == [2.0, 3.0]
    assert speeds.of("other") == []


def test_a_crawl_that_was_started_over_begins_anew() -> None:
    speeds = RecentSpeeds()
    speeds.note(stats(done=100), 1000.0)
    speeds.note(stats(done=1), 1010.0)
    speeds.note(stats(done=11), 1020.0)

    assert [speed.pages_per_s for speed in speeds.of("shop")] == [1.0]


def test_what_nobody_looks_at_is_forgotten() -> None:
    speeds = RecentSpeeds()
    for number in range(2 * CRAWLS_KEPT):
        speeds.note(stats(f"crawl {number}"), 1000.0)
    for at in range(int(2 * KEPT_S)):
        speeds.note(stats(), 2000.0 + 2 * at)

    assert len(speeds._samples) == CRAWLS_KEPT
    assert len(speeds.of("shop")) < KEPT_S / 2
