"""Takes messages from a list on Redis that is filled with LPUSH, as Celery does. Needs the extra
`redis`.

key ─ take ─▶ key:taken ─ done ─▶ gone
                  │
                  ├─ reject ─▶ key:rejected
                  └─ after HELD_S ─▶ taken by the next client
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence

import msgspec

from shoal.drivers.redis.link import RedisLink
from shoal.drivers.redis.scripts import Scripts
from shoal.feeds.formats import Wire
from shoal.feeds.port import REJECTED_KEPT, Message, Rejected, Source, printable

HELD_S = 60.0
"""A process that has not finished a message by then is taken for dead, and others get it."""
LOOK_EVERY_S = 0.25
AT_ONCE = 1000
ENTRY_KEPT = 2000
"""How many characters of a rejected message are kept."""

_ID_BYTES = 32
_scripts = Scripts("shoal.feeds")


class RedisListSource(Source):
    """A list on Redis. A message gets an id when it is first taken, and keeps it."""

    def __init__(self, link: RedisLink, key: str) -> None:
        self.shown = link.shown
        self._link = link
        self._key = key
        self._taken = beside(link, key, "taken")
        self._held_ms = round(HELD_S * 1000)

    async def take(self, limit: int, wait_s: float) -> list[Message]:
        until = time.monotonic() + wait_s
        while not (members := await self._take(min(limit, AT_ONCE))):
            if time.monotonic() >= until:
                return []
            await asyncio.sleep(LOOK_EVERY_S)
        return [
            Message(Wire(member[_ID_BYTES:]), member, member[:_ID_BYTES].decode())
            for member in members
        ]

    async def done(self, messages: Sequence[Message]) -> None:
        members = [m.receipt for m in messages if isinstance(m.receipt, bytes)]
        if members:
            await self._link.command("ZREM", self._taken, *members)

    async def reject(self, rejected: Sequence[Rejected]) -> None:
        await put_aside(self._link, self._key, rejected)
        await self.done([one.message for one in rejected])

    async def waiting(self) -> int:
        waiting = await self._link.command("LLEN", self._key)
        return int(waiting) + int(await self._link.command("ZCARD", self._taken))

    async def close(self) -> None:
        await self._link.close()

    async def _take(self, limit: int) -> list[bytes]:
        token = secrets.token_hex(_ID_BYTES // 2 - 2)
        keys = [self._key, self._taken]
        taken: list[bytes] = await self._link.run(
            _scripts["list_take"], keys, limit, self._held_ms, token
        )
        return taken


async def put_aside(link: RedisLink, key: str, rejected: Sequence[Rejected]) -> None:
    """Store rejected messages in the list KEY:rejected, in the same form as a crawl's inbox
    does."""
    records = list[bytes]()
    for one in rejected:
        body = one.message.wire.body[: 4 * ENTRY_KEPT]
        text = body.decode("utf-8", "replace")[:ENTRY_KEPT]
        record = {"entry": text, "reason": printable(one.reason), "at": time.time()}
        records.append(msgspec.json.encode(record))
    aside = beside(link, key, "rejected")
    await link.command("LPUSH", aside, *records)
    await link.command("LTRIM", aside, 0, REJECTED_KEPT - 1)


def beside(link: RedisLink, key: str, name: str) -> str:
    """The name of a key that belongs to another key and is on the same server of a cluster."""
    return f"{{{key}}}:{name}" if link.is_cluster else f"{key}:{name}"
