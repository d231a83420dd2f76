"""How many processes a fleet has: with children that are made up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock, Mock, patch

import pytest

from shoal.config import Settings
from shoal.fleet.child import WorkerOrder
from shoal.fleet.fleet import Fleet
from shoal.runtime.orders import Ended

LIMIT_S = 30.0


class Children:
    """Those that were started. They end in good order as soon as they have their order."""

    def __init__(self) -> None:
        self.started = 0
        self.refused = 0
        """So many more cannot be started."""

    @asynccontextmanager
    async def process(self, module: str, on_stderr: Any = None) -> AsyncIterator[Any]:
        if self.refused:
            self.refused -= 1
            raise OSError(24, "Too many open files")
        self.started += 1
        yield Mock(pid=self.started, ended=AsyncMock(return_value=Ended(0, "")))


@pytest.fixture
def children() -> Iterator[Children]:
    made = Children()
    with patch("shoal.fleet.fleet.child_process", made.process):
        yield made


async def test_a_fleet_whose_workers_have_ended_can_be_run_again(children: Children) -> None:
    """A crawl that was finished may get new seeds while its workers end."""
    frontier: Any = Mock(stats=AsyncMock(return_value=Mock(ended=0, lost=0)))
    fleet = Fleet(WorkerOrder("shop", ["shop.py"], Settings(workers=2)), frontier)
    async with asyncio.timeout(LIMIT_S):
        await fleet.run()
        assert children.started == 2
        await fleet.run()
        assert children.started == 4
        fleet.drain()
        await fleet.run()
    assert children.started == 4


async def test_a_machine_without_room_for_a_worker_costs_the_others_nothing(
    children: Children, caplog: pytest.LogCaptureFixture
) -> None:
    done = iter(range(100))  # The crawl goes on.
    stats = AsyncMock(side_effect=lambda _: Mock(ended=next(done), lost=0))
    frontier: Any = Mock(stats=stats)
    fleet = Fleet(WorkerOrder("shop", ["shop.py"], Settings(workers=2)), frontier)
    children.refused = 1
    async with asyncio.timeout(LIMIT_S):
        await fleet.run()
    assert (children.started, fleet.deaths) == (2, 1)
    assert "a worker could not be started: [Errno 24] Too many open files" in caplog.text
