"""Publishes to streams or lists on Redis. Needs the extra `redis`.

    redis-stream://host?key=shop   streams shop, shop:dead, shop:finished; the field `message`
    redis://host?key=shop          lists of these names, read from the right

Each holds up to `max` entries. While one is full, publishing fails with StorageBusy. Consumers must
delete what they have read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from shoal.core.addresses import Address, parse_address
from shoal.drivers.redis.failures import translated
from shoal.drivers.redis.link import DEFAULT_PORT, SENTINEL_PORT, RedisLink, check
from shoal.drivers.redis.scripts import Argument
from shoal.errors import ConfigError, StorageBusy, WrongKeyType, unreachable
from shoal.feeds.redis_list import beside
from shoal.feeds.redis_stream import FIELD
from shoal.publish.formats import enveloped
from shoal.publish.port import Channel, Message, Publisher, larger_than

MOST_BYTES = 16 * 2**20
MOST_WAITING = 100_000
AT_ONCE = 500
"""The maximum number of messages, and about how many bytes of them, in one pipeline."""
BYTES_AT_ONCE = 4 * 2**20

_STREAM = "-stream"
_NUMBER = re.compile("[1-9][0-9]{0,8}")


class RedisPublisher(Publisher):
    """Publishes to the stream or list `key`, from which consumers read, and to two beside it."""

    def __init__(self, address: str) -> None:
        is_sentinel = address.startswith("redis+sentinel:")
        where = parse_address(address, SENTINEL_PORT if is_sentinel else DEFAULT_PORT)
        self.shown = where.shown
        self._is_stream = where.scheme.endswith(_STREAM)
        server = replace(where, scheme=where.scheme.removesuffix(_STREAM))
        check(server, ("key", "max"))
        self._link = RedisLink(server)
        key, self._most = _options(where)
        self._keys = {channel: beside(self._link, key, channel) for channel in Channel}
        self._keys[Channel.ITEMS] = key

    async def check(self, *, makes: bool = True) -> None:
        try:
            for channel in Channel:
                await self._waiting(channel)
        except StorageBusy as error:
            raise unreachable(error) from None

    def too_large(self, message: Message) -> str:
        return larger_than(MOST_BYTES, len(self._body(message)))

    async def publish(self, messages: Sequence[Message]) -> None:
        for channel in {message.channel for message in messages}:
            if await self._waiting(channel) >= self._most:
                key = self._keys[channel]
                raise StorageBusy(f"{self.shown} is full: {self._most:,} messages wait in {key!r}")
        commands, size = list[Sequence[Argument]](), 0
        for message in messages:
            commands.append(self._command(message))
            size += len(message.wire.body)
            if len(commands) == AT_ONCE or size > BYTES_AT_ONCE:
                await self._send(commands)
                commands, size = [], 0
        if commands:
            await self._send(commands)
        await self._link.replicated()

    async def close(self) -> None:
        await self._link.close()

    async def _send(self, commands: Sequence[Sequence[Argument]]) -> None:
        with translated(self.shown):
            for answer in await self._link.together(*commands):
                if isinstance(answer, Exception):
                    raise answer

    async def _waiting(self, channel: Channel) -> int:
        key = self._keys[channel]
        try:
            return int(await self._link.command("XLEN" if self._is_stream else "LLEN", key))
        except WrongKeyType:
            kind = "stream" if self._is_stream else "list"
            raise ConfigError(f"{self.shown}: {key!r} is there, and is no {kind}") from None

    def _command(self, message: Message) -> Sequence[Argument]:
        key, body = self._keys[message.channel], self._body(message)
        return ("XADD", key, "*", FIELD, body) if self._is_stream else ("LPUSH", key, body)

    def _body(self, message: Message) -> bytes:
        return enveloped(message, self._keys[message.channel])


def _options(address: Address) -> tuple[str, int]:
    key, most = address.options.get("key"), address.options.get("max", f"{MOST_WAITING}")
    if not key:
        raise ConfigError(f"{address.shown}: which list or stream? add ?key=name")
    if not _NUMBER.fullmatch(most):
        raise ConfigError(f"{address.shown}: max is a number of messages from 1 to 999999999")
    return key, int(most)
