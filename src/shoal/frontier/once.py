"""Doing something once for all who work on a crawl.

A note says who is at it, and changes every few seconds while they are; in the end, that it is done.
Whoever dies at it leaves a note that changes no more: then another does it. So what is done is done
once, unless somebody dies in the middle of it, or is as good as dead for a while: then it is done
again.
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
"""Who has not been heard of for so long, by the clock of whoever waits, is taken for dead."""


class Claim(msgspec.Struct, omit_defaults=True):
    """Who is at it, or was."""

    about: str
    """What it is that is done once. For another thing, the note stands for nothing."""
    holder: str = ""
    """Empty: somebody has tried, and it did not work."""
    beat: int = 0
    is_done: bool = False


class Once:
    """One process's part in things that are done once, of one topic of the notes."""

    def __init__(self, notes: Notes, topic: str, clock: Callable[[], float] = time.monotonic):
        self._notes = notes
        self._topic = topic
        self._clock = clock
        self._seen: tuple[bytes, float] = b"", 0.0

    async def tried(self, name: str, about: str, do: Callable[[], Awaitable[None]]) -> bool:
        """Do it, unless it is done or somebody is at it. Returns whether it is done; who asks again
        does it if they die. What it raises is passed on: then it is not done."""
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
