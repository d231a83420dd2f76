"""The Redis keys of scrapy-redis: a queue, as a sorted set or a list, and a set of fingerprints."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol

from shoal.core.addresses import masked
from shoal.drivers.redis.failures import translated
from shoal.drivers.redis.link import RedisLink, redis_address
from shoal.errors import ConfigError, StorageBusy, unreachable
from shoal.frontier.addresses import REDIS_SCHEMES
from shoal.runtime.patience import patiently
from shoal.scrapy.migration.pickled import Stored

SCANNED = 1000


class _AnyServer(RedisLink):
    """A server that is only read and emptied: it may be older than what a frontier needs."""

    async def _check_servers(self) -> None:
        return


class OldQueue(Protocol):
    """A queue of scrapy-redis, whatever kind of Redis key it is."""

    async def length(self) -> int: ...

    async def read(self, skip: int, limit: int) -> list[Stored]:
        """Return up to `limit` entries after the first `skip`, in the order in which scrapy-redis
        takes them."""

    async def remove(self, entries: Sequence[Stored]) -> None: ...


class OldKeys:
    """The keys in which scrapy-redis kept a spider's requests."""

    def __init__(self, address: str, queue_key: str, dupefilter_key: str) -> None:
        if address.partition(":")[0] not in REDIS_SCHEMES:
            raise ConfigError(f"--from wants a redis:// address, not {masked(address)!r}")
        self._redis = _AnyServer(redis_address(address))
        self.shown = self._redis.shown
        self.queue_key = queue_key
        self.dupefilter_key = dupefilter_key

    async def queue(self) -> OldQueue:
        """Return the queue. Raises ConfigError if the keys are not what scrapy-redis makes."""
        try:
            kinds = [await self._kind(key) for key in (self.queue_key, self.dupefilter_key)]
        except StorageBusy as error:
            raise unreachable(error) from None
        queue, dupefilter = kinds
        if queue == dupefilter == "none":
            keys = f"{self.queue_key!r} nor {self.dupefilter_key!r}"
            raise ConfigError(f"{self.shown}: there is neither {keys}")
        if queue not in ("zset", "list", "none"):
            raise ConfigError(f"{self.shown}: {self.queue_key!r} is a {queue}, not a queue")
        if dupefilter not in ("set", "none"):
            what = f"{self.dupefilter_key!r} is a {dupefilter}, not a set"
            raise ConfigError(f"{self.shown}: {what}")
        kind = _ListQueue if queue == "list" else _PriorityQueue
        return kind(self._ask, self.queue_key)

    async def _kind(self, key: str) -> str:
        return str((await self._redis.command("TYPE", key)).decode())

    async def fingerprints(self) -> int:
        """Return how many fingerprints the dupefilter has."""
        (count,) = await self._ask(("SCARD", self.dupefilter_key))
        return int(count)

    async def known(self, fingerprints: Sequence[bytes]) -> list[bool]:
        """Return for each of these fingerprints whether the dupefilter has it."""
        key = self.dupefilter_key
        found = await self._ask(*(("SISMEMBER", key, each.hex()) for each in fingerprints))
        return [bool(each) for each in found]

    async def scan(self) -> AsyncIterator[list[bytes]]:
        """Yield all members of the dupefilter, some of them perhaps twice."""
        cursor: Any = 0
        while True:
            ((cursor, members),) = await self._ask(
                ("SSCAN", self.dupefilter_key, cursor, "COUNT", SCANNED)
            )
            if members:
                yield members
            if not int(cursor):
                return

    async def remove_fingerprints(self, members: Sequence[bytes]) -> None:
        """Remove fingerprints that the frontier has."""
        await self._ask(("SREM", self.dupefilter_key, *members))

    async def close(self) -> None:
        """Close the connection."""
        await self._redis.close()

    async def _ask(self, *commands: Any) -> list[Any]:
        """Return the answers to some commands, in one round trip."""

        async def ask() -> list[Any]:
            answers = await self._redis.together(*commands)
            with translated(self.shown):
                for answer in answers:
                    if isinstance(answer, Exception):
                        raise answer
            return answers

        return await patiently("server of scrapy-redis", ask)


Ask = Callable[..., Awaitable[list[Any]]]


class _PriorityQueue:
    def __init__(self, ask: Ask, key: str) -> None:
        self._ask = ask
        self._key = key

    async def length(self) -> int:
        return int((await self._ask(("ZCARD", self._key)))[0])

    async def read(self, skip: int, limit: int) -> list[Stored]:
        (found,) = await self._ask(("ZRANGE", self._key, skip, skip + limit - 1))
        return [Stored(raw, 0) for raw in found]

    async def remove(self, entries: Sequence[Stored]) -> None:
        await self._ask(("ZREM", self._key, *(entry.raw for entry in entries)))


class _ListQueue:
    """A queue in a list. The oldest entries are at its end; their places, counted from its
    beginning, never change."""

    def __init__(self, ask: Ask, key: str) -> None:
        self._ask = ask
        self._key = key

    async def length(self) -> int:
        return int((await self._ask(("LLEN", self._key)))[0])

    async def read(self, skip: int, limit: int) -> list[Stored]:
        length, found = await self._ask(
            ("LLEN", self._key), ("LRANGE", self._key, -skip - limit, -skip - 1)
        )
        last = int(length) - skip - 1
        return [Stored(raw, last - number) for number, raw in enumerate(reversed(found))]

    async def remove(self, entries: Sequence[Stored]) -> None:
        await self._ask(*(("LREM", self._key, -1, entry.raw) for entry in entries))
