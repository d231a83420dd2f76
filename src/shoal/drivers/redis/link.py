"""The connection to Redis: one server, a sentinel's master or a cluster, with one interface.

Nothing is retried here. A call that fails with StorageBusy may still have been executed, so all
scripts are safe to run again.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from redis import exceptions as failure
from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from shoal.core.addresses import Address, parse_address
from shoal.drivers.redis.failures import translated
from shoal.drivers.redis.scripts import Argument, Script
from shoal.errors import ConfigError, StorageBusy

CONNECT_S = 5.0
ANSWER_S = 15.0
"""How long to wait for an answer before the server counts as away."""

DEFAULT_PORT = 6379
SENTINEL_PORT = 26379
MIN_VERSION = 7
REPLICA_WAIT_MS = 1000

_OPTIONS = {
    "redis": set[str](),
    "rediss": {"ca"},
    "redis+sentinel": {"ca", "tls", "sentinel_password"},
    "redis+cluster": {"ca", "tls", "shards"},
}
_NUMBER = re.compile("[0-9]{1,9}")
_SHARDS = re.compile("[1-9][0-9]{0,2}")


class RedisLink:
    """Runs scripts and commands. In a cluster, `keys` decide on which server."""

    def __init__(self, address: Address) -> None:
        """`address` must have passed `check`."""
        self.address = address
        self.shown = address.shown
        self.is_cluster = address.scheme == "redis+cluster"
        self._plain_pipeline = {} if self.is_cluster else {"transaction": False}
        self._has_replicas = address.scheme == "redis+sentinel"
        self._sentinels: Any = None
        self._redis: Any = None
        self._is_checked = False
        self._may_be_moved = False

    async def run(self, script: Script, keys: Sequence[str], *args: Argument) -> Any:
        """Run a script by sending its text. Raises ScriptError if the script refuses."""
        return await self.command(*script.by_text(keys, *args))

    async def run_known(self, script: Script, key: str, *args: Argument) -> Any:
        """Run a loaded script. Raises redis-py's NoScriptError if the server does not know it."""
        return await self.command(*script.by_digest([key], *args))

    async def together(self, *batch: Sequence[Argument]) -> list[Any]:
        """Run commands in order, in one round trip as far as their keys allow.

        The answer to a command that fails is its error; the others may have been executed.
        """
        redis = await self._ready()
        async with self._talking(), redis.pipeline(**self._plain_pipeline) as pipe:
            for args in batch:
                pipe.execute_command(*args)
            return list(await pipe.execute(raise_on_error=False))

    async def load(self, scripts: Iterable[Script], key: str) -> None:
        """Load scripts into the server of this key, which may have changed since the last call."""
        self._is_checked = False
        redis = await self._ready()
        async with self._talking():
            where = {"target_nodes": redis.get_node_from_key(key)} if self.is_cluster else {}
            for script in scripts:
                await redis.execute_command("SCRIPT LOAD", script.text, **where)

    async def command(self, *args: Argument) -> Any:
        """Run a plain command. Its second word is the key."""
        redis = await self._ready()
        async with self._talking():
            return await redis.execute_command(*args)

    async def replicated(self) -> None:
        """Wait briefly until a replica has all earlier writes, if there are replicas.

        WAIT only covers the writes of its own connection, and earlier writes may have gone over
        another one. So this makes one more write first.
        """
        if not self._has_replicas:
            return
        written = ("SET", "shoal:replicated", 1), ("WAIT", 1, REPLICA_WAIT_MS)
        with translated(self.shown):
            for answer in await self.together(*written):
                if isinstance(answer, Exception):
                    raise answer  # This may no longer be the master, and the writes may be lost.

    async def infos(self) -> list[dict[str, Any]]:
        """The INFO of each server. Empty without the permission to ask."""
        redis = self._redis or await self._ready()
        async with self._talking():
            try:
                if self.is_cluster:
                    nodes = redis.get_primaries()
                    return [await redis.execute_command("INFO", target_nodes=n) for n in nodes]
                return [await redis.info()]
            except failure.NoPermissionError:
                return []

    async def is_forgetful(self) -> bool:
        """Whether a server loses its data when it restarts. False if that cannot be known."""
        return any(not info.get("aof_enabled", 1) for info in await self.infos())

    async def masters(self) -> int:
        """The number of servers that share the keys."""
        redis = await self._ready()
        return len(redis.get_primaries()) if self.is_cluster else 1

    async def close(self) -> None:
        """Close the connections. Not an error if the server is gone."""
        if self._redis is not None:
            await self._redis.aclose()
        if self._sentinels is not None:
            for sentinel in self._sentinels.sentinels:
                await sentinel.aclose()

    @asynccontextmanager
    async def _talking(self) -> AsyncIterator[None]:
        """Translate errors, and limit the time for an answer.

        redis-py's own time limit could lose a cancellation that comes at the wrong moment, as
        asyncio.wait_for does.
        """
        try:
            with translated(self.shown):
                async with asyncio.timeout(ANSWER_S):
                    yield
        except StorageBusy:
            self._may_be_moved = True
            raise

    # Opening

    async def _ready(self) -> Any:
        if self._redis is None:
            self._redis = self._client()
        if not self._is_checked:
            async with self._talking():
                if self.is_cluster:
                    await self._redis.initialize()
            await self._check_servers()
            self._is_checked = True
        if self.is_cluster and self._may_be_moved:
            await self._look_again()
        return self._redis

    async def _look_again(self) -> None:
        """Ask the cluster for its current masters.

        redis-py does so itself after a single command has failed, but not after a pipeline or a
        call that timed out here.
        """
        async with self._talking():
            await self._redis.nodes_manager.initialize()
        self._may_be_moved = False

    def _client(self) -> Any:
        address = self.address
        if address.scheme == "redis+sentinel":
            return self._sentinel_client()
        if self.is_cluster:
            nodes = [ClusterNode(host, port) for host, port in address.hosts]
            return RedisCluster(startup_nodes=nodes, **self._settings())
        (host, port), *_ = address.hosts
        database = int(address.path or 0)
        return Redis(host=host, port=port, db=database, **self._settings())

    def _sentinel_client(self) -> Any:
        address = self.address
        service, _, database = address.path.partition("/")
        own = self._settings() | {"username": None}
        own["password"] = address.options.get("sentinel_password")
        make: Any = Sentinel  # It has no type annotations in redis-py.
        self._sentinels = make(address.hosts, sentinel_kwargs=own, **self._settings())
        return self._sentinels.master_for(service, db=int(database or 0))

    def _settings(self) -> dict[str, Any]:
        address = self.address
        settings: dict[str, Any] = {
            "username": address.user or None,
            "password": address.password or None,
            "socket_connect_timeout": CONNECT_S,
            "socket_timeout": None,  # See `_talking`.
            # redis-py must not repeat a call on its own.
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
        }
        if address.scheme == "rediss" or address.options.get("tls") == "yes":
            settings |= {"ssl": True, "ssl_ca_certs": self._authority()}
        return settings

    def _authority(self) -> str | None:
        """The file of trusted CA certificates; None for those of the system. Raises ConfigError."""
        file = self.address.options.get("ca")
        try:
            ssl.create_default_context(cafile=file)
        except OSError as error:
            raise ConfigError(f"{self.shown}: no certificates in {file!r}: {error}") from None
        return file

    async def _check_servers(self) -> None:
        """Refuse servers that are too old or that might lose a crawl's data. Raises ConfigError."""
        for info in await self.infos():
            version = str(info.get("redis_version", f"{MIN_VERSION}"))
            if int(version.partition(".")[0]) < MIN_VERSION:
                raise ConfigError(f"{self.shown} is Redis {version}; Shoal needs {MIN_VERSION}")
            policy = info.get("maxmemory_policy", "noeviction")
            if policy != "noeviction":
                raise ConfigError(
                    f"{self.shown} may throw keys away when it is full (maxmemory-policy is"
                    f" {policy}): a crawl would lose data. Set it to noeviction."
                )


def redis_address(text: str) -> Address:
    """Parse the address of one server, of sentinels or of a cluster. Raises ConfigError."""
    is_sentinel = text.startswith("redis+sentinel:")
    address = parse_address(text, SENTINEL_PORT if is_sentinel else DEFAULT_PORT)
    check(address)
    return address


def check(address: Address, more_options: Collection[str] = ()) -> None:
    """Check that an address is one of Redis. `more_options` are allowed besides the usual ones.

    Raises ConfigError.
    """
    allowed = _OPTIONS[address.scheme].union(more_options)
    unknown = sorted(set(address.options) - allowed)
    if unknown:
        there_are = ", ".join(sorted(allowed)) or "none"
        raise ConfigError(
            f"{address.shown}: unknown option {', '.join(unknown)} (there are: {there_are})"
        )
    if address.scheme == "redis+sentinel" and not address.path:
        raise ConfigError(f"{address.shown}: the service is missing (h1,h2/service)")
    if address.scheme == "redis+cluster" and address.path:
        raise ConfigError(f"{address.shown}: a cluster has no databases")
    database = address.path.partition("/")[2] if "sentinel" in address.scheme else address.path
    if not _NUMBER.fullmatch(database or "0"):
        raise ConfigError(f"{address.shown}: not a database number: {database!r}")
    if not _SHARDS.fullmatch(address.options.get("shards", "1")):
        raise ConfigError(f"{address.shown}: shards is a number from 1 to 999")
    if address.options.get("tls", "yes") not in ("yes", "no"):
        raise ConfigError(f"{address.shown}: tls is yes or no")
    if len(address.hosts) > 1 and address.scheme in ("redis", "rediss"):
        raise ConfigError(f"{address.shown}: several hosts need redis+sentinel or redis+cluster")
