"""The accounts of one worker, read when its work begins and again while it runs."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping

from msgspec.structs import replace

from shoal.config import Settings
from shoal.core.cookies import Jar
from shoal.core.exits import ExitEntry, PoolRules
from shoal.core.policy import parse_duration
from shoal.core.session_config import SessionConfig
from shoal.frontier.patient import patient
from shoal.frontier.port import HasExits
from shoal.sessions.accounts import KnownAccount
from shoal.sessions.groups import AccountGroup, groups_of, through_of
from shoal.sessions.kept_cookies import check_cookies
from shoal.sessions.vault import Unreadable, vault_of

READ_AGAIN_S = 10.0
"""The minimum time between two readings because of an unknown account."""
WARNED = 1_000
"""The maximum number of warnings about accounts."""

log = logging.getLogger("shoal")


def own_sessions(
    settings: Settings, frontier: HasExits, environ: Mapping[str, str] | None = None
) -> OwnSessions | None:
    """The accounts of a worker with these settings. None if they name no groups.

    Raises ConfigError for a key that cannot be read.
    """
    if not groups_of(settings):
        return None
    return OwnSessions(settings, frontier, os.environ if environ is None else environ)


class OwnSessions:
    """The accounts of a worker. Empty until `open` is called."""

    def __init__(self, settings: Settings, frontier: HasExits, environ: Mapping[str, str]) -> None:
        """Raises ConfigError."""
        self._frontier = frontier
        self._vault = vault_of(settings.encrypt_key, environ)
        self._groups = {
            name: AccountGroup(name, table, through_of(name, table, settings), environ)
            for name, table in groups_of(settings).items()
        }
        self._told: dict[str, tuple[PoolRules, list[ExitEntry]]] = {}
        self._missing = asyncio.Event()
        self._warned: set[tuple[str, str]] = set()

    @property
    def pools(self) -> tuple[str, ...]:
        """The groups whose tasks the worker may be given: those whose accounts could be read."""
        return tuple(group.pool for group in self._groups.values() if group.is_known)

    def account(self, identity: str) -> KnownAccount | None:
        """An account with its password. None if it is not known here.

        Another worker may have read a newer list, so the accounts are read again soon in that case.
        """
        group, _, name = identity.partition("#")
        known = self._groups[group].accounts.get(name) if group in self._groups else None
        if known is None:
            self._missing.set()
            self._warn(identity, "%s is no account that is known here: they are read again")
        return known

    def table(self, identity: str) -> SessionConfig:
        """The table that says how an account or a group logs in. Only for groups in `pools`."""
        return self._groups[identity.partition("#")[0]].table

    def seal(self, identity: str, jar: Jar) -> bytes:
        """The cookies of an account in the form that the frontier stores."""
        return self._vault.seal(identity, jar)

    def unseal(self, identity: str, kept: bytes) -> Jar | None:
        """The cookies of an account. None if they cannot be read; it has to log in again then."""
        try:
            return self._vault.unseal(identity, kept)
        except Unreadable as error:
            self._warn(
                identity, "session %s: its cookies cannot be read, so it logs in anew: %s", error
            )
            return None

    async def open(self) -> None:
        """Read the accounts and store them in the frontier. Raises ConfigError if the stored
        cookies are encrypted with another key."""
        for name in self._groups:
            await check_cookies(patient(self._frontier), name, self._vault)
        await self._read_all()

    async def _read_all(self) -> None:
        await self._keep_ways()
        await self._read(list(self._groups.values()))
        await self._put()

    async def _keep_ways(self) -> None:
        """Take the pool of groups that use the crawl's pool from the frontier, where the process
        that began the crawl stored it: this worker may be set to another pool, or none."""
        unsaid = [group for group in self._groups.values() if not group.table.pool]
        if not unsaid:
            return
        known = {state.rules.name: state.rules for state in await patient(self._frontier).pools()}
        for group in unsaid:
            if (rules := known.get(group.pool)) is not None:
                group.rules = replace(group.rules, through=rules.through)

    async def keep_fresh(self) -> None:
        """Read accounts again when they are due, and when one is missing. Runs until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for group in self._groups.values():
                tasks.create_task(self._keep_fresh(group))
            while True:
                await self._missing.wait()
                began = time.monotonic()
                await self._read_all()
                await asyncio.sleep(max(began + READ_AGAIN_S - time.monotonic(), 0.0))
                self._missing.clear()

    async def close(self) -> None:
        """Forget the passwords."""
        for group in self._groups.values():
            group.accounts = {}

    async def _keep_fresh(self, group: AccountGroup) -> None:
        while True:
            await asyncio.sleep(parse_duration(group.table.refresh))
            await self._read([group])
            await self._put()

    async def _read(self, groups: list[AccountGroup]) -> None:
        async with asyncio.TaskGroup() as tasks:  # A slow source does not delay the others.
            for group in groups:
                tasks.create_task(group.read())

    async def _put(self) -> None:
        """Store new and changed groups in the frontier. Waits while the frontier is away."""
        for group in self._groups.values():
            now = group.rules, group.entries
            if group.is_known and self._told.get(group.name) != now:
                await patient(self._frontier).put_pool(*now)
                self._told[group.name] = now

    def _warn(self, identity: str, words: str, *more: object) -> None:
        """Log a warning once for each account."""
        if (identity, words) not in self._warned and len(self._warned) < WARNED:
            self._warned.add((identity, words))
            log.warning(words, identity, *more)
