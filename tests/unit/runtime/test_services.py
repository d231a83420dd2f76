"""Several services in one process."""

from __future__ import annotations

import asyncio

import pytest

from shoal.runtime.services import Services
from support.until import in_time


class Waits:
    """Runs until it is drained, and then for a moment."""

    def __init__(self) -> None:
        self.draining = asyncio.Event()
        self.is_running = asyncio.Event()
        self.has_ended = self.is_killed = False

    async def run(self) -> None:
        self.is_running.set()
        await in_time("the drain", self.draining.wait())
        await asyncio.sleep(0)
        self.has_ended = True

    def drain(self) -> None:
        self.draining.set()


class HasProcess(Waits):
    def kill(self) -> None:
        self.is_killed = True


class Ends:
    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    async def run(self) -> None:
        if self._error is not None:
            raise self._error

    def drain(self) -> None:
        pass


async def test_all_are_drained() -> None:
    one, other = Waits(), Waits()
    services = Services(one, other)
    running = asyncio.create_task(services.run())
    await in_time("both to run", asyncio.gather(one.is_running.wait(), other.is_running.wait()))
    assert not running.done()
    services.drain()
    await in_time("the end", running)
    assert (one.has_ended, other.has_ended) == (True, True)


async def test_when_one_ends_the_others_end_in_order() -> None:
    other = Waits()
    await in_time("the end", Services(Ends(), other).run())
    assert other.has_ended


async def test_an_error_ends_all_in_order() -> None:
    other = Waits()
    with pytest.raises(ZeroDivisionError):
        await in_time("the end", Services(other, Ends(ZeroDivisionError())).run())
    assert other.has_ended


async def test_only_processes_are_killed() -> None:
    plain, with_process = Waits(), HasProcess()
    Services(plain, with_process).kill()
    assert (plain.is_killed, with_process.is_killed) == (False, True)
