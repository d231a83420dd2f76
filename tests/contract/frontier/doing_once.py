"""Work that is done once for a fleet: one process claims it; if that dies, another does it."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import msgspec
import pytest

from shoal.frontier.once import SILENT_S, Claim, Once
from shoal.runtime.process import worker_name
from support.frontiers import Backend
from support.until import in_time

TOPIC = "opened"


class TestOnce:
    async def test_of_many_one_does_it(self, backend: Backend) -> None:
        did: list[int] = []
        parts = [Once(backend.open_another().notes, TOPIC) for _ in range(5)]

        async def do() -> None:
            did.append(1)
            await asyncio.sleep(0)

        await asyncio.gather(*(part.tried("shop", "1", do) for part in parts))
        assert did == [1]
        assert [await part.tried("shop", "1", do) for part in parts] == [True] * 5
        assert did == [1], "nor is it done again"
        assert await parts[0].tried("shop", "2", do), "another crawl of that name"
        assert did == [1, 1]

    async def test_who_asks_meanwhile_is_told_so(self, backend: Backend) -> None:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def do() -> None:
            begun.set()
            await in_time("the word to end", may_end.wait())

        doing = asyncio.create_task(Once(backend.frontier.notes, TOPIC).tried("shop", "1", do))
        await in_time("it begins", begun.wait())
        other = Once(backend.open_another().notes, TOPIC)
        assert not await other.tried("shop", "1", do)
        may_end.set()
        assert await doing
        assert await other.tried("shop", "1", do)

    async def test_what_raised_is_not_done(self, backend: Backend) -> None:
        async def fail() -> None:
            raise ValueError("no")

        async def do() -> None:
            return None

        once = Once(backend.frontier.notes, TOPIC)
        with pytest.raises(ValueError, match="no"):
            await once.tried("shop", "1", fail)
        assert await once.tried("shop", "1", do)

    async def test_another_does_it_for_the_dead(self, backend: Backend) -> None:
        did: list[str] = []
        now = 0.0

        async def do() -> None:
            did.append("did")

        notes = backend.frontier.notes
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        for name, holder in (("here", worker_name(gone.pid)), ("elsewhere", "other:1")):
            claim = Claim("1", holder)
            await notes.write(TOPIC, name, msgspec.json.encode(claim))
        once = Once(notes, TOPIC, lambda: now)
        assert await once.tried("here", "1", do)
        assert not await once.tried("elsewhere", "1", do)
        now = SILENT_S - 1
        await notes.write(TOPIC, "elsewhere", msgspec.json.encode(Claim("1", "other:1", beat=1)))
        assert not await once.tried("elsewhere", "1", do)
        now += SILENT_S
        assert await once.tried("elsewhere", "1", do)
        assert did == ["did", "did"]
