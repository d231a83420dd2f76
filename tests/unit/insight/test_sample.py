"""What a look at all crawls sees, on a real file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from shoal.config import Rules
from shoal.coordinator.runs import RUNS, Run, past
from shoal.frontier import frontier_at
from shoal.frontier.port import Frontier
from shoal.frontier.values import Control, CrawlState, Pulse
from shoal.insight import sample
from shoal.insight.sample import SHOWN_AFTER_END_S, Sample, survey

NIGHT = "shop@2026-11-15T03:00"
NEXT_NIGHT = "shop@2026-11-16T03:00"


@pytest.fixture
async def frontier(tmp_path: Path) -> AsyncIterator[Frontier]:
    async with frontier_at(f"sqlite:///{tmp_path}/shoal.db", None) as opened:
        yield opened


async def finish(frontier: Frontier, crawl: str, rules: Rules | None = None) -> float:
    """Have a crawl that is over; returns when that was."""
    await frontier.start(crawl, rules or Rules())
    assert await frontier.control(crawl, Control.SEAL) is CrawlState.FINISHED
    ended_at = (await frontier.stats(crawl)).finished_at
    assert ended_at is not None
    return ended_at


async def only_sample(frontier: Frontier, now: float) -> Sample:
    (only,) = (await survey(frontier, now)).samples
    return only


async def test_a_crawl_that_is_over_is_shown_for_an_hour(frontier: Frontier) -> None:
    ended_at = await finish(frontier, "shop")

    assert (await only_sample(frontier, ended_at + SHOWN_AFTER_END_S - 1)).crawl == "shop"
    assert (await survey(frontier, ended_at + SHOWN_AFTER_END_S)).samples == []


async def test_a_run_is_shown_with_its_schedule_and_window(frontier: Frontier) -> None:
    await frontier.start(NIGHT, Rules())
    run = Run(crawl=NIGHT, schedule="shop", due_at=1.0, fired_at=1.0, deadline=99.0)
    await frontier.notes.write(RUNS, NIGHT, msgspec.json.encode(run))
    await frontier.beat(NIGHT, Pulse(worker="w:1", host="w", pid=1, version="0"))

    seen = await only_sample(frontier, 10.0)

    assert (seen.schedule, seen.deadline) == ("shop", 99.0)
    assert [pulse.worker for pulse in seen.workers] == ["w:1"]


async def test_a_finished_run_knows_the_items_of_the_last_finished_one(frontier: Frontier) -> None:
    ended_at = await finish(frontier, NEXT_NIGHT)
    for crawl, state, items in (
        (NIGHT, "finished", 70),
        ("shop@2026-11-15T04:00", "cancelled", 3),
        (NEXT_NIGHT, "finished", 1),
    ):
        run = Run(crawl=crawl, schedule="shop", due_at=1.0, fired_at=1.0, state=state, items=items)
        await frontier.notes.write(past("shop"), crawl, msgspec.json.encode(run))

    assert (await only_sample(frontier, ended_at)).items_before == 70


async def test_without_a_schedule_the_crawl_before_is_the_one_it_names(frontier: Frontier) -> None:
    await finish(frontier, "may")
    ended_at = await finish(frontier, "june", Rules(previous="may"))
    await finish(frontier, "july", Rules(previous="nothing"))

    samples = {seen.crawl: seen for seen in (await survey(frontier, ended_at)).samples}

    assert {name: seen.items_before for name, seen in samples.items()} == {
        "may": None,
        "june": 0,
        "july": None,
    }


async def test_only_so_many_are_looked_at_and_those_under_way_come_first(
    frontier: Frontier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "MAX_CRAWLS", 2)
    await frontier.start("old", Rules())
    ended_at = await finish(frontier, "over")
    await frontier.start("new", Rules())

    seen = await survey(frontier, ended_at)

    assert {one.crawl for one in seen.samples} == {"old", "new"}
    assert seen.left_out == 1
    assert seen.leader is None
