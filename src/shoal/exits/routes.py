"""The pools of a process: turns exits, which the frontier lends by id, into routes."""

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
    """All pools of a process. Their addresses, which may contain secrets, never leave it."""

    def __init__(self, pools: Mapping[str, Pool], fetcher: Fetcher | None) -> None:
        """Use `open` instead."""
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
        """Read all lists.

        With `strict`, for the process that begins a crawl, raises ConfigError if a list cannot be
        read or has no proxies. A worker continues without such a list and tries again later.
        """
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
        """The pools whose lists could be read here, whose tasks a worker asks for.

        A pool whose list has become empty counts too: if no worker asked for its tasks, they would
        wait for ever.
        """
        return tuple(name for name, pool in self._pools.items() if pool.is_known)

    def route(self, lent: Lent, task_pool: str | None) -> Route | None:
        """The route that a lease permits. None if the exit is not known here, or if the request
        would leave directly and the task's pool, as known here, does not allow that."""
        if lent.exit:
            pool = self._pools.get(lent.pool)
            return pool.route(lent.exit, lent.session) if pool is not None else None
        own = self._pools.get(task_pool or lent.pool)
        return _BY_PERMISSION if own is not None and own.table.allow_direct else None

    def pool(self, name: str) -> Pool:
        """The pool with this name. Raises ConfigError if there is none."""
        if name not in self._pools:
            there_are = ", ".join(self._pools) or "none"
            raise ConfigError(f"no pool {name!r} (there are: {there_are})")
        return self._pools[name]

    async def put(self, frontier: HasExits) -> None:
        """Store all new and changed pools in the frontier. Waits while the frontier is away."""
        await self._put(patient(frontier))

    async def _put(self, frontier: HasExits) -> None:
        for name, pool in self._pools.items():
            now = pool.rules, pool.entries
            if pool.is_known and self._told.get(name) != now:
                await frontier.put_pool(*now)
                self._told[name] = now

    async def keep_fresh(self, frontier: HasExits) -> None:
        """Read each list again whenever it is due. Runs until cancelled."""
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
        """Read all lists now, and store the changes in the frontier."""
        await self._read(self._pools.values())
        await self.put(frontier)

    async def close(self) -> None:
        """Close the connections."""
        if self._fetcher is not None:
            await self._fetcher.close()

    async def _read(self, pools: Iterable[Pool]) -> None:
        if self._fetcher is None:
            return
        async with asyncio.TaskGroup() as group:  # A slow list does not delay the others.
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
    """Before a crawl begins: check that all its pools can be used, and store them in the frontier.

    `check` may make further checks of the exits. Raises ConfigError.
    """
    check_default_pool(settings)
    if not settings.proxy_pools:
        return
    exits = await Exits.open(settings, strict=True)
    try:
        check(exits)
        await exits._put(frontier)  # Do not wait: if it is away now, its address may be wrong.
    finally:
        await exits.close()


def check_default_pool(settings: Settings) -> None:
    """Check that the default pool of the crawl exists. Raises ConfigError."""
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
    """A separate fetcher for lists, guarded like any other."""
    limits = {"max_body_bytes": MAX_LIST_BYTES, "timeout_s": LIST_TIMEOUT_S}
    return open_fetcher(replace(settings, **limits))
