"""Elects the leader among coordinators: one at a time, and another within seconds if it dies."""

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
    """One coordinator's part in the election."""

    def __init__(self, notes: Notes, pid: int) -> None:
        self._notes = notes
        # The random part tells a process from a dead one that had the same PID.
        self.holder = f"{worker_name(pid)}-{secrets.token_hex(3)}"

    async def gain(self) -> Leader:
        """Wait until this coordinator leads. Returns the name of the holder and the term."""
        said = ""
        while True:
            try:
                own = await self._notes.lead(self.holder, TTL_S)
                if own is not None:
                    return own
                leader = await self._notes.leader()
                news = f"{leader.holder} leads; standing by" if leader else said
            except StorageError as error:  # Also wait if the disk is full: somebody may free space.
                news = f"waiting for the frontier: {error}"
            if news != said:
                log.warning("%s", news)
                said = news
            await asyncio.sleep(RENEW_S)

    async def hold(self, own: Leader) -> None:
        """Keep the leadership. Raises Deposed if another coordinator leads, or may lead because the
        frontier could not be reached for too long."""
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
        """Let another coordinator lead at once."""
        try:
            await self._notes.resign(self.holder)
        except StorageError:  # The others then wait until the leadership expires.
            return
