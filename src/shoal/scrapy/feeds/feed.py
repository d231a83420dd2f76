"""A feed of start URLs in Redis: messages are taken, held, and removed when the frontier has them.

    redis_key ─ take ─▶ redis_key:taken ─ done ─▶ gone        (the frontier has its requests)
                              │
                              ├─ reject ─▶ redis_key:rejected  (no request can be made of it)
                              └─ time over, or given back ─▶ taken by the next process that asks

The frontier may be elsewhere, so a message cannot move in one step. It is in one of these keys at
any moment, and it has an id by which the frontier recognises a message that comes a second time.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from shoal.runtime.patience import patiently
from shoal.scrapy.link import ScriptLink

HELD_S = 60.0
"""A process that has not finished a message after this time is considered dead; others take the
message."""
REJECTED_KEPT = 10_000
"""The number of rejected messages of a feed that are kept: the newest."""

MOST = 10_000
"""The most messages taken at a time: an id has room for a number of four hex digits."""

_TOKEN_BYTES = 14
_ID_LENGTH = 2 * _TOKEN_BYTES + 4
_WHAT = "feed"

T = TypeVar("T")


class Message(msgspec.Struct, frozen=True):
    """A message of a feed: a URL, or a request as JSON."""

    id: str
    """The id stays the same, however often the message is taken."""
    data: bytes
    key: str
    """The key of the feed it came from."""


class Feed:
    """The feeds of a spider. Any number of spiders may share them, each with a `Feed` of its own.

    A Redis that is away is waited for.
    """

    def __init__(self, address: str, keys: Sequence[str], *, held_s: float = HELD_S) -> None:
        """`keys` are lists, sets or sorted sets. Messages of the first are taken first."""
        self._link = ScriptLink(address)
        self._keys = list(keys)
        self._held_ms = round(held_s * 1000)

    async def take(self, limit: int) -> list[Message]:
        """Take some messages, which are held for this process for a while: first those that others
        took and lost."""
        taken: list[Message] = []
        for key in self._keys:
            if len(taken) < limit:
                taken += await self._take(key, limit - len(taken))
        return taken

    async def done(self, messages: Iterable[Message]) -> None:
        """Remove messages whose requests the frontier has."""
        for key, members in _by_key(messages):
            held = self._link.beside(key, "taken")
            await _waiting(partial(self._link.command, "ZREM", held, *members))

    async def reject(self, message: Message, reason: str) -> None:
        """Move a message to the rejected ones, with the reason why no request can be made of it."""
        keys = [self._link.beside(message.key, name) for name in ("taken", "rejected")]
        args = (REJECTED_KEPT, _member(message), _record(message, reason))
        await _waiting(partial(self._link.run, "feed_reject", keys, *args))

    async def give_back(self, messages: Iterable[Message]) -> None:
        """Let others take messages at once. Does not wait for a Redis that is away: when their time
        is over, others get them anyway."""
        for key, members in _by_key(messages):
            scored = [part for member in members for part in (0, member)]
            await self._link.command("ZADD", self._link.beside(key, "taken"), "XX", *scored)

    async def waiting(self) -> int:
        """Return how many messages there are, including those that were taken."""
        counts = [await self._run("feed_waiting", key) for key in self._keys]
        return sum(counts)

    async def close(self) -> None:
        """Close the connections. Messages still held go to others when their time is over."""
        await self._link.close()

    async def _take(self, key: str, limit: int) -> list[Message]:
        token = secrets.token_hex(_TOKEN_BYTES)
        members = await self._run("feed_take", key, min(limit, MOST), self._held_ms, token)
        return [
            Message(member[:_ID_LENGTH].decode(), member[_ID_LENGTH:], key) for member in members
        ]

    async def _run(self, script: str, key: str, *args: str | int) -> Any:
        keys = [key, self._link.beside(key, "taken")]
        return await _waiting(partial(self._link.run, script, keys, *args))


async def _waiting(call: Callable[[], Awaitable[T]]) -> T:
    return await patiently(_WHAT, call)


def _by_key(messages: Iterable[Message]) -> Iterable[tuple[str, list[bytes]]]:
    """Yield the messages of each feed, as members of its sorted set `taken`."""
    ordered = sorted(messages, key=lambda message: message.key)
    for key, group in groupby(ordered, key=lambda message: message.key):
        yield key, [_member(message) for message in group]


def _member(message: Message) -> bytes:
    return message.id.encode() + message.data


def _record(message: Message, reason: str) -> bytes:
    """Return the record of a rejected message: as text where it is text."""
    try:
        content = {"data": message.data.decode()}
    except UnicodeDecodeError:
        content = {"data_base64": base64.b64encode(message.data).decode()}
    return msgspec.json.encode({"reason": reason, **content})
