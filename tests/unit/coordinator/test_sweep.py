"""Queues that are forgotten, and clocks that must not be believed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.config import Rules
from shoal.coordinator.runs import LeaderNotes, Run, history, past
from shoal.coordinator.schedules import Schedule
from shoal.coordinator.sweep import JUMP_S, STEADY_S, Steadiness, sweep
from shoal.frontier import frontier_at
from shoal.frontier.port import Frontier

DAY = 24 * 3600.0
YEARS = 3 * 365 * DAY
NOW = 1.8e9
SCHEDULE = Schedule(name="shop", target="shop.py", cron="0 3 * * *", keep="7d")
OLD, FRESH = "shop@2026-11-01T03:00", "shop@2026-11-15T03:00"


@pytest.fixture
async def frontier(tmp_path: Path) -> AsyncIterator[Frontier]:
    async with frontier_at(f"sqlite:///{tmp_path}/shoal.db") as frontier:
        yield frontier


async def swept(frontier: Frontier, *, is_steady: bool) -> list[str]:
    """The crawls that are left of two runs, and what their notes say of it."""
    leader = await frontier.notes.lead("one", 1e9)
    assert leader is not None
    records = LeaderNotes(frontier.notes, leader)
    for crawl, ended_at in ((OLD, NOW - 8 * DAY), (FRESH, NOW - 6 * DAY)):
        await frontier.start(crawl, Rules())
        run = Run(
            crawl=crawl,
            schedule="shop",
            due_at=0.0,
            fired_at=0.0,
            state="finished",
            ended_at=ended_at,
        )
        await records.write(past("shop"), crawl, run)
    await sweep(frontier, records, {"shop": SCHEDULE}, NOW, is_steady=is_steady)
    left = sorted(stats.crawl for stats in await frontier.crawls())
    noted = {run.crawl: run.is_forgotten for run in await history(frontier.notes, "shop")}
    assert noted == {crawl: crawl not in left for crawl in (OLD, FRESH)}
    return left


async def test_what_is_old_is_forgotten_and_its_history_stays(frontier: Frontier) -> None:
    assert await swept(frontier, is_steady=True) == [FRESH]


async def test_nothing_while_the_clock_may_be_wrong(frontier: Frontier) -> None:
    assert await swept(frontier, is_steady=False) == [OLD, FRESH]


def test_a_clock_is_believed_after_an_hour() -> None:
    steadiness = Steadiness()
    looks = [steadiness.look(NOW + at, at) for at in (0.0, 60.0, STEADY_S - 1, STEADY_S, YEARS)]
    assert looks == [False, False, False, True, True]


@pytest.mark.parametrize("jump", [YEARS, -2 * 3600.0, JUMP_S + 1])
def test_one_that_has_jumped_is_not_and_neither_is_one_that_jumps_back(jump: float) -> None:
    steadiness = Steadiness()
    steadiness.look(NOW, 0.0)
    assert steadiness.look(NOW + STEADY_S, STEADY_S)
    at = STEADY_S + 60
    assert not steadiness.look(NOW + at + jump, at)
    assert not steadiness.look(NOW + at + 60 + jump, at + 60)
    assert not steadiness.look(NOW + at + 120, at + 120)
    assert not steadiness.look(NOW + at + 120 + STEADY_S - 1, at + 120 + STEADY_S - 1)
    assert steadiness.look(NOW + at + 120 + STEADY_S, at + 120 + STEADY_S)


def test_small_corrections_are_no_jumps() -> None:
    steadiness = Steadiness()
    steadiness.look(NOW, 0.0)
    assert steadiness.look(NOW + STEADY_S + JUMP_S, STEADY_S)
