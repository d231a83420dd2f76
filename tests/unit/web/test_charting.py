"""The charts of a crawl, from what a leader has kept of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from shoal.config import Rules
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.values import CrawlState, Stats
from shoal.insight.history import HOUR_S, HOURS_KEPT, MINUTE_S, Hour, Point
from shoal.web.sampler import Sampler
from shoal.web.screens.charting import charts_of

NOW = 1_800_000_000.0


def point(minute: int) -> Point:
    """After so many minutes of ten pages a minute."""
    return Point(
        at=NOW - 23 * HOUR_S + minute * MINUTE_S, added=20_000, remaining=20_000 - 10 * minute,
        done=10 * minute, dead=0, retries=0, sent=0, blocked=0, duplicates=0, items=0, workers=1,
    )  # fmt: skip


@pytest.mark.parametrize(("span", "lines"), [("15m", 1), ("1h", 1), ("24h", 2)])
async def test_a_day_of_minutes_is_a_line_with_a_gap_where_nobody_led(
    tmp_path: Path, span: str, lines: int
) -> None:
    frontier = SqliteFrontier(tmp_path / "shoal.db")
    hours: dict[int, list[Point]] = {}
    for minute in (*range(300), *range(500, 23 * 60)):
        hours.setdefault(int(point(minute).at // HOUR_S), []).append(point(minute))
    for hour, points in hours.items():
        text = msgspec.json.encode(Hour(points))
        await frontier.notes.write("points/shop", f"{hour % HOURS_KEPT:02}", text)
    context = cast(Any, SimpleNamespace(frontier=frontier, sampler=Sampler(frontier)))

    paths, labels = await charts_of(context, "shop", span, NOW)
    await frontier.close()

    for name in ("pages_per_s", "queue"):
        assert paths[name].count("M") == lines
        assert paths[name].count("L") > 10
        assert paths[f"{name}.area"].count("Z") == lines
    assert (labels["queue.now"], labels["pages_per_s.now"]) == ("6,210", "0.2")


async def test_where_nobody_looked_the_minutes_of_the_leader_are_shown(tmp_path: Path) -> None:
    frontier = SqliteFrontier(tmp_path / "shoal.db")
    now = NOW + HOUR_S / 2
    minutes = [point(23 * 60 + minute) for minute in range(31)]
    hour = int(minutes[0].at // HOUR_S) % HOURS_KEPT
    await frontier.notes.write("points/shop", f"{hour:02}", msgspec.json.encode(Hour(minutes)))
    sampler = Sampler(frontier)
    stats = Stats("shop", CrawlState.RUNNING, Rules(), created_at=0.0, added=20_000)
    for ago_s in (700.0, 690.0, 10.0):
        sampler.speeds.note(stats, now - ago_s)
    context = cast(Any, SimpleNamespace(frontier=frontier, sampler=sampler))

    paths, _ = await charts_of(context, "shop", "15m", now)
    await frontier.close()

    assert (paths["queue"].count("M"), paths["queue"].count("L")) == (1, 13)
