"""The exits that a worker can use: what the fleet lends by its id becomes a route here."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from shoal.config import Settings
from shoal.core.exits import ExitEntry, Lent, PoolRules
from shoal.core.policy import parse_duration
from shoal.core.pool_config import TABLES
from shoal.core.task import DIRECT
from shoal.errors import ConfigError
from shoal.exits.lists import LIST_TIMEOUT_S, MAX_LIST_BYTES
from shoal.exits.pools import Pool
from shoal.fetch import open_fetcher
from shoal.fetch.port import Fetcher, Route
from shoal.frontier.patient import patient
from shoal.frontier.port import HasExits

log = logging.getLogger("shoal")

_BY_PERMISSION = Route(DIRECT, allows_direct=True)


class Exits:
    """All pools of a process. Their addresses, which may hold secrets, stay here."""

    def __init__(self, pools: Mapping[str, Pool], fetcher: Fetcher | None) -> None:
        """`open` makes one."""
        self._pools = dict(pools)
        self._fetcher = fetcher
        self._told: dict[str, tuple[PoolRules, list[ExitEntry]]] = {}

    @classmethod
    async def open(
        cls,
        settings: Settings,
        *,
        environ: Mapping[str, str] | None = None,
        strict: bool = False,
    ) -> Exits:
        """Read all lists. `strict` is for those who begin the work: then a list that cannot be
        read, or has no proxies, is a ConfigError. A worker goes on without, and tries again."""
        variables = os.environ if environ is None else environ
        pools = {
            name: Pool(name, table, settings.max_body_bytes, variables)
            for name, table in settings.proxy_pools.items()
        }
        opened = cls(pools, _list_fetcher(settings) if pools else None)
        try:
            if strict:
                await opened._read_or_raise()
            else:
                await opened._read(pools.values())
        except BaseException:
            await opened.close()
            raise
        return opened

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools whose lists could be read here: what a worker asks for. Also one whose list has
        become empty: if nobody asked for its tasks, they would wait for ever."""
        return tuple(name for name, pool in self._pools.items() if pool.is_known)

    def route(self, lent: Lent, task_pool: str | None) -> Route | None:
        """The way that a lease lets its request take. None: that exit is not known here, or the
        request would leave directly and the task's pool does not allow it as it is known here."""
        if lent.exit:
            pool = self._pools.get(lent.pool)
            return pool.route(lent.exit, lent.session) if pool is not None else None
        own = self._pools.get(task_pool or lent.pool)
        return _BY_PERMISSION if own is not None and own.table.allow_direct else None

    def pool(self, name: str) -> Pool:
        """One of the pools, for those who look at its exits. Raises ConfigError."""
        if name not in self._pools:
            there_are = ", ".join(self._pools) or "none"
            raise ConfigError(f"no pool {name!r} (there are: {there_are})")
        return self._pools[name]

    async def put(self, frontier: HasExits) -> None:
        """Tell the fleet of all pools, as far as it was not told. Waits while the frontier is
        away."""
        await self._put(patient(frontier))

    async def _put(self, frontier: HasExits) -> None:
        for name, pool in self._pools.items():
            now = pool.rules, pool.entries
            if pool.is_known and self._told.get(name) != now:
                await frontier.put_pool(*now)
                self._told[name] = now

    async def keep_fresh(self, frontier: HasExits) -> None:
        """Read each list again when it is time, for ever. To be run beside the work, and
        cancelled."""
        lists = [pool for pool in self._pools.values() if pool.table.sources]
        due = {pool.name: time.monotonic() + _refresh_s(pool) for pool in lists}
        while due:
            await asyncio.sleep(max(min(due.values()) - time.monotonic(), 0.0))
            now = time.monotonic()
            ready = [pool for pool in lists if due[pool.name] <= now]
            await self._read(ready)
            due |= {pool.name: time.monotonic() + _refresh_s(pool) for pool in ready}
            await self.put(frontier)

    async def read_again(self, frontier: HasExits) -> None:
        """Read all lists now."""
        await self._read(self._pools.values())
        await self.put(frontier)

    async def close(self) -> None:
        """Let go of connections."""
        if self._fetcher is not None:
            await self._fetcher.close()

    async def _read(self, pools: Iterable[Pool]) -> None:
        if self._fetcher is None:
            return
        async with asyncio.TaskGroup() as group:  # A slow list holds up no other.
            for pool in pools:
                group.create_task(_read_one(pool, self._fetcher))

    async def _read_or_raise(self) -> None:
        for name, pool in self._pools.items():
            try:
                if self._fetcher is not None:
                    await pool.read(self._fetcher, strict=True)
                if not pool.exits:
                    raise ConfigError("no proxies are in its list")
            except ConfigError as error:
                where = f"--{TABLES}" if name == TABLES else f"[{TABLES}.{name}]"
                raise ConfigError(f"{where}: {error}") from None


async def tell_of_pools(
    settings: Settings, frontier: HasExits, check: Callable[[Exits], None] = lambda exits: None
) -> None:
    """For those who begin a crawl: look whether all its pools can be used, also by what `check`
    says, and tell the fleet of them. Raises ConfigError."""
    check_default_pool(settings)
    if not settings.proxy_pools:
        return
    exits = await Exits.open(settings, strict=True)
    try:
        check(exits)
        await exits._put(frontier)  # If it is away now, its address may be wrong.
    finally:
        await exits.close()


def check_default_pool(settings: Settings) -> None:
    """Whether the pool of the crawl is one that its tasks may name. Raises ConfigError."""
    chosen = settings.rules.proxy_pool
    if chosen and chosen != DIRECT and chosen not in settings.rules.pools:
        there_are = ", ".join(settings.rules.pools) or "none"
        raise ConfigError(f"proxy_pool: no such pool: {chosen} (there are: {there_are})")


async def _read_one(pool: Pool, fetcher: Fetcher) -> None:
    known = pool.exits.keys()
    await pool.read(fetcher)
    new, gone = len(pool.exits.keys() - known), len(known - pool.exits.keys())
    if known and (new or gone):
        level = logging.INFO if pool.exits else logging.WARNING
        words = "pool %s: %d exits, %d new, %d gone"
        log.log(level, words, pool.name, len(pool.exits), new, gone)


def _refresh_s(pool: Pool) -> float:
    return parse_duration(pool.table.refresh)


def _list_fetcher(settings: Settings) -> Fetcher:
    """A fetcher of our own, with the guards of every fetcher."""
    limits = {"max_body_bytes": MAX_LIST_BYTES, "timeout_s": LIST_TIMEOUT_S}
    return open_fetcher(replace(settings, **limits))
