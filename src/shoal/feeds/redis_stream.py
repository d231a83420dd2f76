"""Takes messages from a stream on Redis as Symfony Messenger fills it, with a consumer group. Needs
the extra `redis`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.drivers.redis.link import RedisLink
from shoal.errors import StorageError, StorageFailed
from shoal.feeds.formats import Wire
from shoal.feeds.port import Message, Rejected, Source
from shoal.feeds.redis_list import put_aside

GROUP = "shoal"
FIELD = b"message"
"""The name that Messenger gives to the field with the message."""
HELD_S = 60.0
"""A process that has not finished an entry by then is taken for dead, and others get it."""


class RedisStreamSource(Source):
    """A stream on Redis, used as a queue: an entry that is done is deleted, as Messenger does.
    Other consumer groups keep what they have read already."""

    def __init__(self, link: RedisLink, key: str) -> None:
        self.shown = link.shown
        self._link = link
        self._key = key
        self._consumer = secrets.token_hex(8)
        self._held_ms = round(HELD_S * 1000)
        self._has_group = False

    async def take(self, limit: int, wait_s: float) -> list[Message]:
        await self._make_group()
        lost = ("XAUTOCLAIM", self._key, GROUP, self._consumer, self._held_ms, "0")
        claimed = await self._command(*lost, "COUNT", limit)
        entries = claimed[1]
        if not entries:
            block = ("BLOCK", max(1, round(wait_s * 1000)))
            read = ("XREADGROUP", "GROUP", GROUP, self._consumer, "COUNT", limit, *block)
            answer = await self._command(*read, "STREAMS", self._key, ">")
            entries = _entries(answer)
        return [_message(*entry) for entry in entries if entry[1] is not None]

    async def done(self, messages: Sequence[Message]) -> None:
        ids = [m.receipt for m in messages if isinstance(m.receipt, bytes)]
        if ids:
            await self._command("XACK", self._key, GROUP, *ids)
            await self._command("XDEL", self._key, *ids)

    async def reject(self, rejected: Sequence[Rejected]) -> None:
        await put_aside(self._link, self._key, rejected)
        await self.done([one.message for one in rejected])

    async def waiting(self) -> int:
        return int(await self._command("XLEN", self._key))

    async def close(self) -> None:
        await self._link.close()

    async def _make_group(self) -> None:
        if self._has_group:
            return
        try:
            await self._link.command("XGROUP", "CREATE", self._key, GROUP, "0", "MKSTREAM")
        except StorageError as error:  # The driver takes BUSYGROUP for a temporary BUSY error.
            if "BUSYGROUP" not in str(error):
                raise
        self._has_group = True

    async def _command(self, *args: Any) -> Any:
        try:
            return await self._link.command(*args)
        except StorageFailed as error:
            if "NOGROUP" in str(error):  # Somebody deleted the stream.
                self._has_group = False
            raise


def _entries(answer: Any) -> list[Any]:
    """The entries in an answer for one stream. The library returns these in one of two forms."""
    if not answer:
        return []
    streams = answer.values() if isinstance(answer, dict) else (part[1] for part in answer)
    return [entry for entries in streams for entry in entries]


def _message(identity: bytes, fields: Any) -> Message:
    """The message in an entry. If that has no field for the message, all its fields are one."""
    named = (
        fields if isinstance(fields, dict) else dict(zip(fields[::2], fields[1::2], strict=True))
    )
    body = named.get(FIELD)
    if body is None:
        texts = {
            k.decode("utf-8", "replace"): v.decode("utf-8", "replace") for k, v in named.items()
        }
        body = msgspec.json.encode(texts)
    return Message(Wire(body), identity, identity.decode())
