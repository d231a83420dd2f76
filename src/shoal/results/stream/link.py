"""The connection to the stream on Redis: its address, its keys, its scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from shoal.core.addresses import parse_address
from shoal.drivers.redis.link import DEFAULT_PORT, RedisLink, check
from shoal.drivers.redis.scripts import Argument, Scripts
from shoal.errors import ConfigError, StorageBusy, WrongKeyType, unreachable

MOST_WAITING = 10_000
DEFAULT_KEY = "shoal:results"

_OPTIONS = ("key", "max")
_SCRIPTS = Scripts("shoal.results.stream")
_NUMBER = re.compile("[1-9][0-9]{0,8}")


class StreamLink:
    """A connection to the stream at `redis-stream://user:pw@host:port/db?key=…&max=…`."""

    def __init__(self, address: str) -> None:
        parsed = parse_address(address, DEFAULT_PORT)
        server = replace(parsed, scheme=parsed.scheme.removesuffix("-stream"))
        check(server, _OPTIONS)
        self.shown = parsed.shown
        self.key = parsed.options.get("key", DEFAULT_KEY)
        most = parsed.options.get("max", f"{MOST_WAITING}")
        if not _NUMBER.fullmatch(most):
            raise ConfigError(f"{self.shown}: max is a number of batches from 1 to 999999999")
        if not self.key:
            raise ConfigError(f"{self.shown}: the key is empty")
        self.most = int(most)
        self.notes_key = f"{self.key}:notes"
        self.garbage_key = f"{self.key}:garbage"
        self._redis = RedisLink(server)

    async def check(self) -> None:
        """Check that the stream can be used, before work begins. Raises ConfigError."""
        try:
            await self.command("XLEN", self.key)
        except StorageBusy as error:
            raise unreachable(error) from None

    async def run(self, script: str, keys: Sequence[str], *args: Argument) -> Any:
        """Run one of the Lua scripts. They are short, so their text is sent with each call."""
        return await self.command(*_SCRIPTS[script].by_text(keys, *args))

    async def command(self, *args: Argument) -> Any:
        """Run a plain command. Raises ConfigError if a key of the stream has another type."""
        try:
            return await self._redis.command(*args)
        except WrongKeyType:
            raise ConfigError(f"{self.shown}: {self.key!r} is no stream of results") from None

    async def is_forgetful(self) -> bool:
        """Whether the server loses the content of the stream when it restarts."""
        return await self._redis.is_forgetful()

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.close()
