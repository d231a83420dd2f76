"""Who leads among coordinators: one at a time, and another within seconds of its death."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time

from shoal.errors import StorageError
from shoal.frontier.board import Deposed, Leader, Notes
from shoal.runtime.process import worker_name

TTL_S = 5.0
RENEW_S = 1.0

log = logging.getLogger("shoal")


class Leadership:
    """One coordinator's part in it."""

    def __init__(self, notes: Notes, pid: int) -> None:
        self._notes = notes
        # A process that has the number of a dead one is not that one.
        self.holder = f"{worker_name(pid)}-{secrets.token_hex(3)}"

    async def gain(self) -> Leader:
        """Wait until we lead. Returns in whose name and which term."""
        said = ""
        while True:
            try:
                own = await self._notes.lead(self.holder, TTL_S)
                if own is not None:
                    return own
                leader = await self._notes.leader()
                news = f"{leader.holder} leads; standing by" if leader else said
            except StorageError as error:  # Also a full disk: somebody may make room.
                news = f"waiting for the frontier: {error}"
            if news != said:
                log.warning("%s", news)
                said = news
            await asyncio.sleep(RENEW_S)

    async def hold(self, own: Leader) -> None:
        """Go on leading. Raises Deposed if somebody else does, or may: while the frontier cannot be
        reached nobody can tell us."""
        good_until = time.monotonic() + TTL_S
        while True:
            await asyncio.sleep(RENEW_S)
            began = time.monotonic()
            try:
                held = await self._notes.lead(self.holder, TTL_S)
            except StorageError:
                if time.monotonic() > good_until:
                    raise Deposed("the frontier does not answer") from None
                continue
            if held != own:
                raise Deposed
            good_until = began + TTL_S

    async def resign(self) -> None:
        """Let another one lead at once."""
        try:
            await self._notes.resign(self.holder)
        except StorageError:  # Then it waits until our time is over.
            return
