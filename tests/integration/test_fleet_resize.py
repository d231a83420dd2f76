"""A fleet whose size changes while it works: real processes, on a file."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from shoal.config import build
from shoal.fleet.child import WorkerOrder
from shoal.fleet.fleet import Fleet, _restart_wait_s
from shoal.frontier import frontier_at
from support.processes import Folder, is_alive
from support.slow_shop import all_found_once, seed, slow_site
from support.until import in_time, until

PAGES = 60


@asynccontextmanager
async def fleet_of(folder: Folder) -> AsyncIterator[Fleet]:
    """A fleet without workers. It is killed in the end."""
    settings = build(
        {
            "frontier": folder.address("SHOAL_FRONTIER"),
            "results": folder.address("SHOAL_RESULTS"),
            "concurrency": 2,
            "allow_private": True,
        }
    )
    target = str(folder.path / "links.py")
    order = WorkerOrder("links", [target], settings, until_finished=False, brings_seeds=False)
    async with frontier_at(settings.frontier) as frontier:
        fleet = Fleet(order, frontier, stays=True)
        running = asyncio.create_task(fleet.run())
        try:
            yield fleet
            fleet.drain()
            await in_time("the fleet to end", running)
        finally:
            fleet.kill()
            with suppress(asyncio.CancelledError):
                running.cancel()
                await running


async def workers_at_work(folder: Folder, pids: list[int]) -> None:
    async def are_heard_of() -> bool:
        told = await folder.ask_frontier(lambda frontier: frontier.workers("links"))
        return {pulse.pid for pulse in told} >= set(pids)

    await until("signs of life", are_heard_of)


def has_lost(fleet: Fleet, workers: int) -> bool:
    return fleet.deaths == workers


async def test_more_and_fewer_workers_while_it_works(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with slow_site(folder) as site:
        seed(folder, site, 1, PAGES)
        async with fleet_of(folder) as fleet:
            assert fleet.pids == []
            fleet.resize(3)
            await until("three workers", lambda: len(fleet.pids) == 3)
            first = fleet.pids
            await workers_at_work(folder, first)
            fleet.resize(1)
            await until("one worker", lambda: len(fleet.pids) == 1)
            assert fleet.pids == first[:1], "the youngest leave first"
            fleet.resize(0)
            await until("none", lambda: not fleet.pids)
            assert not any(map(is_alive, first))
            left = await folder.ask_frontier(lambda frontier: frontier.stats("links"))
            assert (left.leased, left.lost) == (0, 0), "what they had is given back"
            fleet.resize(2)
            await until("all pages", lambda: len(set(site.paths)) == PAGES + 1)
    assert await asyncio.to_thread(all_found_once, folder, PAGES)


@pytest.mark.rare
async def test_those_that_are_killed_in_a_row_are_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Folder(tmp_path)
    with slow_site(folder, 0.05) as site:
        seed(folder, site, 1, PAGES)
        async with fleet_of(folder) as fleet:
            fleet.resize(2)
            for kills in range(1, 4):
                await until("two workers", lambda: len(fleet.pids) == 2)
                await workers_at_work(folder, fleet.pids)
                os.kill(fleet.pids[0], signal.SIGKILL)
                await until("the death to be noticed", partial(has_lost, fleet, kills))
            fleet.resize(1)
            await until("all pages", lambda: len(set(site.paths)) == PAGES + 1)
    assert caplog.text.count("a worker died (signal SIGKILL); starting another") == 3
    assert await asyncio.to_thread(all_found_once, folder, PAGES)


async def test_who_is_sent_away_by_somebody_else_leaves_his_place_empty(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with slow_site(folder):
        async with fleet_of(folder) as fleet:
            fleet.resize(2)
            await until("two workers", lambda: len(fleet.pids) == 2)
            await workers_at_work(folder, fleet.pids)
            os.kill(fleet.pids[0], signal.SIGTERM)
            await until("one worker", lambda: len(fleet.pids) == 1)
            fleet.resize(2)
            await until("two again", lambda: len(fleet.pids) == 2)
            assert fleet.deaths == 0


def test_who_dies_at_once_again_and_again_is_waited_for_longer_and_longer() -> None:
    """Others may move the crawl meanwhile, so that it never counts as fruitless."""
    waits = [_restart_wait_s(0, short) for short in range(10)]
    assert waits == [0, 0, 0, 2, 4, 8, 16, 32, 60, 60]
    assert _restart_wait_s(1, 9) == 1
