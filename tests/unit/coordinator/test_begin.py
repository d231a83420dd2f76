"""When runs begin, and when they are left out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.config import Rules
from shoal.coordinator.begin import GRACE_S, Due, RunStarter, decide
from shoal.coordinator.plan import plan
from shoal.coordinator.runs import (
    PAUSED,
    RUN_REQUESTS,
    RUNS,
    LeaderNotes,
    Run,
    RunRequest,
    ScheduleProgress,
    history,
    past,
)
from shoal.coordinator.schedules import Schedule
from shoal.frontier import board, frontier_at
from shoal.frontier.board import Deposed, read_all
from shoal.frontier.port import Frontier
from shoal.frontier.values import Control, CrawlState

HOUR = 3600.0
BEGUN = 500_000 * HOUR + 60.0
"""Seen at a minute past an hour."""


def hourly(**fields: Any) -> Schedule:
    return Schedule(name="shop", target="shop.py", cron="0 * * * *", **fields)


class Decisions:
    """The answers of `decide` to one schedule at some moment."""

    def __init__(self, **fields: Any) -> None:
        self.schedule = hourly(**fields)

    def at(self, now: float, *, running: bool = False, paused: bool = False) -> str | None:
        due = decide(
            self.schedule, ScheduleProgress(BEGUN), now, is_running=running, is_paused=paused
        )
        return due.action if due else None


NEXT = BEGUN - 60.0 + HOUR


@pytest.mark.parametrize(
    ("fields", "now", "running", "action"),
    [
        ({}, NEXT - 1, False, None),
        ({}, NEXT, False, "begin"),
        ({}, NEXT + GRACE_S, False, "begin"),
        ({}, NEXT + GRACE_S + 1, False, "miss"),
        ({"catch_up": True}, NEXT + 1000, False, "begin"),
        ({}, NEXT + 1, True, "skip"),
        ({"overlap": "wait"}, NEXT + 1, True, "wait"),
        ({"overlap": "cancel"}, NEXT + 1, True, "cancel"),
        ({"overlap": "cancel"}, NEXT + 1000, True, "miss"),
    ],
)
def test_what_is_due(fields: dict[str, Any], now: float, running: bool, action: str | None) -> None:
    assert Decisions(**fields).at(now, running=running) == action
    rest = None if action is None else "rest"
    assert Decisions(**fields).at(now, running=running, paused=True) == rest


@given(st.integers(0, 100 * 24))
def test_of_many_due_times_that_were_missed_the_last_one_counts(hours: int) -> None:
    now = NEXT + hours * HOUR + 30.0
    due = decide(
        hourly(catch_up=True), ScheduleProgress(BEGUN), now, is_running=False, is_paused=False
    )
    assert due == Due(NEXT + hours * HOUR, "begin")


@pytest.fixture
async def frontier(tmp_path: Path) -> AsyncIterator[Frontier]:
    async with frontier_at(f"sqlite:///{tmp_path}/shoal.db") as frontier:
        yield frontier


class Leader:
    """One coordinator that leads, by a clock of the test's."""

    def __init__(self, frontier: Frontier, own: board.Leader, **fields: Any) -> None:
        self.frontier = frontier
        self.schedules = {"shop": hourly(**fields)}
        self.records = LeaderNotes(frontier.notes, own)

    async def look(self, now: float) -> None:
        await RunStarter(self.frontier, self.records).look(self.schedules, now)

    async def running(self) -> list[str]:
        return list(await read_all(self.frontier.notes, RUNS, Run))

    async def past(self) -> list[tuple[str, str]]:
        return [(run.crawl, run.state) for run in await history(self.frontier.notes, "shop")]

    async def end(self, run: Run | str) -> None:
        if isinstance(run, str):
            run = (await read_all(self.frontier.notes, RUNS, Run))[run]
            run.done = 9
        run.state = "finished"
        await self.records.close(run)


async def leading(frontier: Frontier, **fields: Any) -> Leader:
    own = await frontier.notes.lead("one", 1e9)
    assert own is not None
    leader = Leader(frontier, own, **fields)
    await leader.look(BEGUN)
    return leader


FIRST, SECOND = "shop@2027-01-15T09:00", "shop@2027-01-15T10:00"


async def test_a_run_begins_once(frontier: Frontier) -> None:
    leader = await leading(frontier, window="2h")
    assert await leader.running() == []
    for moment in (NEXT - 1, NEXT + 0.2, NEXT + 0.7, NEXT + 30):
        await leader.look(moment)
    (run,) = (await read_all(frontier.notes, RUNS, Run)).values()
    assert (run.crawl, run.due_at, run.deadline) == (FIRST, NEXT, NEXT + 2 * HOUR)


async def test_not_again_when_it_is_over(frontier: Frontier) -> None:
    leader = await leading(frontier)
    await leader.look(NEXT)
    await leader.end(FIRST)
    await leader.look(NEXT + 1)
    assert await leader.running() == []


async def test_a_leader_that_died_before_it_noted_the_due_time(frontier: Frontier) -> None:
    """The run is there, its due time is not: the next leader does not begin it anew."""
    leader = await leading(frontier)
    await leader.look(NEXT)
    run = (await read_all(frontier.notes, RUNS, Run))[FIRST]
    run.is_seeded = True
    await leader.records.write(RUNS, FIRST, run)
    await frontier.notes.write("slots", "shop", b'{"last": %f}' % BEGUN)
    await leader.look(NEXT + 1)
    assert (await read_all(frontier.notes, RUNS, Run))[FIRST].is_seeded


async def test_what_is_not_over_is_left_alone(frontier: Frontier) -> None:
    leader = await leading(frontier)
    await leader.look(NEXT)
    await leader.look(NEXT + HOUR)
    assert await leader.running() == [FIRST]
    assert await leader.past() == [(SECOND, "skipped")]


async def test_or_waited_for(frontier: Frontier) -> None:
    leader = await leading(frontier, overlap="wait")
    await leader.look(NEXT)
    await leader.look(NEXT + HOUR)
    await leader.look(NEXT + HOUR + 600)
    assert await leader.running() == [FIRST]
    await leader.end(FIRST)
    await leader.look(NEXT + HOUR + 700)
    assert await leader.running() == [SECOND]
    await leader.end(SECOND)
    await leader.look(NEXT + HOUR + 800)
    assert await leader.running() == []


async def test_or_cancelled(frontier: Frontier) -> None:
    leader = await leading(frontier, overlap="cancel")
    await leader.look(NEXT)
    await frontier.start(FIRST, Rules())
    await leader.look(NEXT + HOUR)
    assert (await frontier.stats(FIRST)).state is CrawlState.CANCELLED
    assert await leader.running() == [FIRST, SECOND]


async def test_also_if_it_has_not_even_begun_or_has_just_finished(frontier: Frontier) -> None:
    leader = await leading(frontier, overlap="cancel")
    await leader.look(NEXT)
    await leader.look(NEXT + HOUR)
    assert (await frontier.stats(FIRST)).state is CrawlState.CANCELLED
    await frontier.start(SECOND, Rules())
    await frontier.control(SECOND, Control.SEAL)
    await leader.look(NEXT + 2 * HOUR)
    assert (await frontier.stats(SECOND)).state is CrawlState.FINISHED


async def test_missed_ones_are_told(frontier: Frontier) -> None:
    leader = await leading(frontier)
    await leader.look(NEXT + 5 * HOUR + 1000)
    assert await leader.past() == [("shop@2027-01-15T14:00", "missed")]
    assert await leader.running() == []


async def test_a_pause(frontier: Frontier) -> None:
    leader = await leading(frontier, catch_up=True)
    await frontier.notes.write(PAUSED, "shop", b"paused")
    await leader.look(NEXT)
    await frontier.notes.write(PAUSED, "shop", None)
    await leader.look(NEXT + 10)
    assert (await leader.running(), await leader.past()) == ([], [])
    await leader.look(NEXT + HOUR)
    assert await leader.running() == [SECOND]


async def test_a_run_that_somebody_asks_for(frontier: Frontier) -> None:
    leader = await leading(frontier)
    for name, schedule in (("a", "shop"), ("b", "nothing")):
        asked_for = msgspec.json.encode(RunRequest(schedule, BEGUN + 7))
        await frontier.notes.write(RUN_REQUESTS, name, asked_for)
    await leader.look(BEGUN + 8)
    assert await leader.running() == ["shop@2027-01-15T08:01:07"]
    assert await frontier.notes.all(RUN_REQUESTS) == {}


async def test_a_run_knows_the_finished_one_before(frontier: Frontier) -> None:
    leader = await leading(frontier)
    await leader.look(NEXT)
    await leader.end(FIRST)
    await leader.look(NEXT + HOUR + GRACE_S + 1)  # Missed: it is not the one before.
    await leader.look(NEXT + 2 * HOUR)
    (run,) = (await read_all(frontier.notes, RUNS, Run)).values()
    assert run.previous == FIRST


async def test_but_not_of_a_bad_night(frontier: Frontier) -> None:
    leader = await leading(frontier)
    for number, (done, failed) in enumerate([(9, 0), (9, 3), (0, 0)]):
        await leader.look(NEXT + number * HOUR)
        (run,) = (await read_all(frontier.notes, RUNS, Run)).values()
        assert run.previous == (FIRST if number else None)
        run.done, run.failed = done, failed
        await leader.end(run)
    await leader.look(NEXT + 3 * HOUR)
    assert (await read_all(frontier.notes, RUNS, Run)).popitem()[1].previous == FIRST


async def test_unless_it_is_not_to(frontier: Frontier) -> None:
    leader = await leading(frontier, recrawl=False)
    await leader.look(NEXT)
    await leader.end(FIRST)
    await leader.look(NEXT + HOUR)
    (run,) = (await read_all(frontier.notes, RUNS, Run)).values()
    assert run.previous is None


async def test_a_leader_that_was_deposed_begins_nothing(frontier: Frontier) -> None:
    leader = await leading(frontier)
    await frontier.notes.resign("one")
    await frontier.notes.lead("other", 1e9)
    with pytest.raises(Deposed):
        await leader.look(NEXT)
    assert await leader.running() == []


YEARS = 3 * 365 * 24 * HOUR


@pytest.mark.parametrize("catch_up", [True, False])
async def test_a_clock_that_was_years_ahead_for_a_moment(
    frontier: Frontier, catch_up: bool, caplog: pytest.LogCaptureFixture
) -> None:
    leader = await leading(frontier, catch_up=catch_up)
    await leader.look(NEXT - 10 + YEARS)
    for moment in (NEXT - 5, NEXT - 4):
        await leader.look(moment)
    await leader.look(NEXT + 1)
    assert FIRST in await leader.running() or (FIRST, "skipped") in await leader.past()
    assert caplog.text.count("the clock has gone back") == 1
    assert catch_up != (FIRST in await leader.running())  # That of then is still under way.


async def test_a_run_of_a_clock_that_was_ahead_is_nobodys_yardstick(frontier: Frontier) -> None:
    leader = await leading(frontier)
    await leader.look(NEXT)
    await leader.end(FIRST)
    await leader.look(NEXT + YEARS)
    (ahead,) = await leader.running()
    await leader.end(ahead)
    await leader.look(NEXT + 10)
    await leader.look(NEXT + HOUR)
    (run,) = (await read_all(frontier.notes, RUNS, Run)).values()
    assert (run.crawl, run.previous) == (SECOND, FIRST)
    (planned,) = await plan(frontier, leader.schedules, NEXT + HOUR)
    assert planned.last is not None
    assert planned.last.crawl == FIRST


@pytest.mark.parametrize("overlap", ["skip", "wait", "cancel"])
async def test_a_clock_that_goes_back_begins_nothing_twice(
    frontier: Frontier, overlap: str
) -> None:
    leader = await leading(frontier, overlap=overlap)
    await leader.look(NEXT)
    await leader.end(FIRST)
    await leader.look(NEXT + HOUR)
    for moment in (NEXT - 30, NEXT + 1, NEXT + 2, NEXT + HOUR + 1):
        await leader.look(moment)
    assert await leader.running() == [SECOND]
    assert await leader.past() == [(FIRST, "finished")]
    assert (await frontier.crawls()) == []  # Nothing was cancelled either.
    await leader.end(SECOND)
    await leader.look(NEXT + 2 * HOUR)
    assert len(await leader.running()) == 1


async def test_a_run_asked_for_by_a_clock_that_is_ahead_is_granted_now(frontier: Frontier) -> None:
    leader = await leading(frontier)
    asked_for = msgspec.json.encode(RunRequest("shop", BEGUN + YEARS))
    await frontier.notes.write(RUN_REQUESTS, "a", asked_for)
    await leader.look(BEGUN + 8)
    assert await leader.running() == ["shop@2027-01-15T08:01:08"]


@pytest.mark.parametrize("moment", ["1e300", "-1", '"soon"'])
async def test_moments_that_no_clock_shows_are_left_alone(frontier: Frontier, moment: str) -> None:
    leader = await leading(frontier)
    await frontier.notes.write(
        RUN_REQUESTS, "a", f'{{"schedule": "shop", "at": {moment}}}'.encode()
    )
    await frontier.notes.write("slots", "shop", f'{{"last": {moment}}}'.encode())
    await frontier.notes.write(
        past("shop"),
        FIRST,
        f'{{"crawl": "{FIRST}", "schedule": "shop", "slot": {moment}}}'.encode(),
    )
    await leader.look(BEGUN + 8)
    await leader.look(NEXT + HOUR)
    assert await leader.running() == [SECOND]


async def test_notes_hold_no_secrets(frontier: Frontier) -> None:
    address = "postgresql://me:hunter2@db-host/shop"
    leader = await leading(frontier, settings={"results": address})
    await leader.look(NEXT)
    await leader.look(NEXT + HOUR)
    for topic in (RUNS, "slots", past("shop")):
        notes = await frontier.notes.all(topic)
        assert notes
        assert b"hunter2" not in b"".join(notes.values())
