"""Minute points of a crawl: what is kept of them, and what a chart makes of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.coordinator.runs import LeaderNotes
from shoal.errors import ConfigError
from shoal.frontier import frontier_at
from shoal.frontier.port import Frontier
from shoal.insight.history import (
    HOURS_KEPT,
    POINTS,
    POINTS_CACHED,
    SPANS_S,
    PointKeeper,
    chart,
    history,
    of_newest_crawl,
    point_of,
    points_since,
)
from support.samples import BEGIN, sample

DAY_MINUTES = 24 * 60


@pytest.fixture
async def frontier(tmp_path: Path) -> AsyncIterator[Frontier]:
    async with frontier_at(f"sqlite:///{tmp_path}/shoal.db", None) as opened:
        yield opened


async def keeper_of(frontier: Frontier, name: str = "one") -> PointKeeper:
    leader = await frontier.notes.lead(name, 600.0)
    assert leader is not None
    return PointKeeper(LeaderNotes(frontier.notes, leader))


def test_a_chart_has_speeds() -> None:
    points = [
        point_of(sample(0, added=500, waiting=500)),
        point_of(sample(1, added=500, waiting=200, done=280, dead=20, retries=10)),
        point_of(sample(3, added=500, waiting=200, done=300, retries=10)),
    ]
    first, second = chart(points)
    assert (first.pages_per_s, first.failures_per_s, first.queue) == (5.0, 0.5, 200)
    # Dead tasks were sent back to wait: less is no speed.
    assert (second.pages_per_s, second.failures_per_s) == (0.0, 0.0)


def test_a_crawl_that_was_started_over_has_no_past() -> None:
    points = [point_of(sample(minute, added=added)) for minute, added in enumerate((5, 9, 2, 4))]
    assert [point.added for point in of_newest_crawl(points)] == [2, 4]


async def test_a_minute_has_one_point_and_the_last_sample_is_at_hand(frontier: Frontier) -> None:
    keeper = await keeper_of(frontier)
    await keeper.keep(sample(0, added=1))
    at_hand = await keeper.keep(sample(0.5, added=2))

    assert [point.added for point in at_hand] == [1, 2]
    assert [point.added for point in await keeper.keep(sample(1, added=3))] == [1, 3]


async def test_points_outlive_their_leader(frontier: Frontier) -> None:
    first = await keeper_of(frontier)
    for minute in range(10):
        await first.keep(sample(minute, added=minute))
    await frontier.notes.resign("one")

    points = await (await keeper_of(frontier, "two")).keep(sample(10, added=10))

    assert [point.added for point in points] == list(range(11))


async def test_a_crawl_has_no_more_than_a_day(frontier: Frontier) -> None:
    keeper = await keeper_of(frontier)
    minutes = DAY_MINUTES + 120
    for minute in range(minutes):
        points = await keeper.keep(sample(minute, added=60 * minute, done=60 * minute))
    now = BEGIN + 60 * (minutes - 1)

    assert len(points) == POINTS_CACHED
    assert len(await frontier.notes.all(f"{POINTS}/shop")) == HOURS_KEPT
    for span, seconds in SPANS_S.items():
        shown = await history(frontier.notes, "shop", span, now)
        assert shown[-1].at == now
        assert len(shown) == seconds / 60 + 1
        assert {point.pages_per_s for point in shown} == {1.0}


async def test_moments_of_a_clock_that_was_ahead_are_not_shown(frontier: Frontier) -> None:
    keeper = await keeper_of(frontier)
    await keeper.keep(sample(600, added=1))
    await (await keeper_of(frontier)).keep(sample(0, added=1))
    points = await points_since(frontier.notes, "shop", BEGIN - 60, BEGIN)
    assert [point.at for point in points] == [BEGIN]


async def test_notes_that_are_no_points_are_left_alone(frontier: Frontier) -> None:
    for text in (b"[]", b'{"points":[[1]]}', b"\xff", b'{"points":"x"}'):
        await frontier.notes.write(f"{POINTS}/shop", "07", text)
        assert await history(frontier.notes, "shop", "1h", BEGIN) == []


async def test_what_a_leader_lets_go_of_is_read_again(frontier: Frontier) -> None:
    keeper = await keeper_of(frontier)
    await keeper.keep(sample(0, crawl="over", added=1))
    await keeper.keep(sample(0, crawl="here", added=1))

    keeper.uncache_all_but(["here"])
    assert keeper._points.keys() == {"here"}

    points = await keeper.keep(sample(1, crawl="over", added=2))
    assert [point.added for point in points] == [1, 2]


async def test_points_of_crawls_that_are_gone_are_forgotten(frontier: Frontier) -> None:
    keeper = await keeper_of(frontier)
    await keeper.keep(sample(0, crawl="gone"))
    await keeper.keep(sample(0, crawl="here"))

    await keeper.forget_all_but({"here"})

    assert list(await frontier.notes.all(POINTS)) == ["here"]
    assert await frontier.notes.all(f"{POINTS}/gone") == {}
    assert await frontier.notes.all(f"{POINTS}/here") != {}


async def test_a_span_that_nobody_keeps_is_said_so(frontier: Frontier) -> None:
    with pytest.raises(ConfigError, match="none of 15m, 1h, 24h"):
        await history(frontier.notes, "shop", "7d", BEGIN)
