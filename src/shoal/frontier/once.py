"""Does something once for all processes that work on a crawl.

A note names the process that is doing it, changes every few seconds meanwhile, and in the end says
that it is done. If that process dies, its note stops changing, and another process does it. So it
is done once, unless a process dies or is suspended in the middle of it: then it is done again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from os import getpid

import msgspec

from shoal.frontier.board import Notes, decoded
from shoal.runtime.process import is_dead_here, worker_name

BEAT_EVERY_S = 5.0
SILENT_S = 60.0
"""A process whose note did not change for so long, by the clock of the one that waits, is taken for
dead."""


class Claim(msgspec.Struct, omit_defaults=True):
    """The note: which process is doing it, or has done it."""

    about: str
    """What is done once. A note about something else is ignored."""
    holder: str = ""
    """Empty: a process has tried, and failed."""
    beat: int = 0
    is_done: bool = False


class Once:
    """One process's part in what is done once. The claims are notes of one topic."""

    def __init__(self, notes: Notes, topic: str, clock: Callable[[], float] = time.monotonic):
        self._notes = notes
        self._topic = topic
        self._clock = clock
        self._seen: tuple[bytes, float] = b"", 0.0

    async def tried(self, name: str, about: str, do: Callable[[], Awaitable[None]]) -> bool:
        """Call `do`, unless it was done or another process is doing it. Returns whether it is done.
        If not, call this again: should the other process die, it is done here. Whatever `do` raises
        is passed on, and it counts as not done."""
        text = await self._notes.read(self._topic, name)
        claim = decoded(self._topic, name, text, Claim) if text else None
        if text and claim and claim.about == about:
            if claim.is_done:
                return True
            if not self._is_left(text, claim):
                return False
        own = Claim(about, worker_name(getpid()))
        if not await self._notes.swap(self._topic, name, text, msgspec.json.encode(own)):
            return False
        await self._do(name, own, do)
        return True

    def _is_left(self, text: bytes, claim: Claim) -> bool:
        now = self._clock()
        if text != self._seen[0]:
            self._seen = text, now
        is_silent = now - self._seen[1] >= SILENT_S
        return not claim.holder or is_silent or is_dead_here(claim.holder)

    async def _do(self, name: str, own: Claim, do: Callable[[], Awaitable[None]]) -> None:
        beating = asyncio.create_task(self._beat(name, own))
        left = Claim(own.about)
        try:
            await do()
            left = Claim(own.about, own.holder, is_done=True)
        finally:
            beating.cancel()
            await asyncio.wait([beating])
            await self._write(name, left)

    async def _beat(self, name: str, own: Claim) -> None:
        while True:
            await asyncio.sleep(BEAT_EVERY_S)
            own.beat += 1
            await self._write(name, own)

    async def _write(self, name: str, claim: Claim) -> None:
        await self._notes.write(self._topic, name, msgspec.json.encode(claim))
