"""A feed of start URLs in Redis: messages are taken, held, and removed when the frontier has them.

    redis_key ─ take ─▶ redis_key:taken ─ done ─▶ gone        (the frontier has its requests)
                              │
                              ├─ reject ─▶ redis_key:rejected  (no request can be made of it)
                              └─ time over, or given back ─▶ taken by the next who asks

The frontier may be elsewhere, so a message cannot move in one step. It is in one of these keys at
any moment, and it has an id, so that the frontier knows a message that comes a second time.
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
"""Whoever has not brought a message home by then is dead; others take it."""
REJECTED_KEPT = 10_000
"""Rejected messages of a feed that are kept: the newest."""

MOST = 10_000
"""Messages at a time: an id has room for four digits of a number."""

_TOKEN_BYTES = 14
_ID_LENGTH = 2 * _TOKEN_BYTES + 4
_WHAT = "feed"

T = TypeVar("T")


class Message(msgspec.Struct, frozen=True):
    """A message of a feed: a URL, or a request as JSON."""

    id: str
    """Stays the same, however often the message is taken."""
    data: bytes
    key: str
    """The feed it is from."""


class Feed:
    """The feeds of a spider. Any number of spiders, each with a `Feed` of its own, may share them.

    A Redis that is away is waited for.
    """

    def __init__(self, address: str, keys: Sequence[str], *, held_s: float = HELD_S) -> None:
        """`keys` are lists, sets or sorted sets; those of the first are taken first."""
        self._link = ScriptLink(address)
        self._keys = list(keys)
        self._held_ms = round(held_s * 1000)

    async def take(self, limit: int) -> list[Message]:
        """Take some messages, which are ours for a while: first those that others took and then
        lost."""
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
        """Put a message aside, with the reason why no request can be made of it."""
        keys = [self._link.beside(message.key, name) for name in ("taken", "rejected")]
        args = (REJECTED_KEPT, _member(message), _record(message, reason))
        await _waiting(partial(self._link.run, "feed_reject", keys, *args))

    async def give_back(self, messages: Iterable[Message]) -> None:
        """Let others take messages at once. Does not wait for Redis: in time, they get them
        anyway."""
        for key, members in _by_key(messages):
            scored = [part for member in members for part in (0, member)]
            await self._link.command("ZADD", self._link.beside(key, "taken"), "XX", *scored)

    async def waiting(self) -> int:
        """How many messages there are, those in somebody's hands among them."""
        counts = [await self._run("feed_waiting", key) for key in self._keys]
        return sum(counts)

    async def close(self) -> None:
        """Close the connections. What is in our hands goes to others in time."""
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
    """The messages of each feed, as members of its sorted set `taken`."""
    ordered = sorted(messages, key=lambda message: message.key)
    for key, group in groupby(ordered, key=lambda message: message.key):
        yield key, [_member(message) for message in group]


def _member(message: Message) -> bytes:
    return message.id.encode() + message.data


def _record(message: Message, reason: str) -> bytes:
    """The record of a rejected message: as text where it is text."""
    try:
        content = {"data": message.data.decode()}
    except UnicodeDecodeError:
        content = {"data_base64": base64.b64encode(message.data).decode()}
    return msgspec.json.encode({"reason": reason, **content})
