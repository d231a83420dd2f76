"""Groups of accounts: their rules for the fleet, made from a table of shoal.toml, and their
accounts."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from shoal.config import Settings
from shoal.core.exits import ExitEntry, PoolRules
from shoal.core.identities import pool_of_session
from shoal.core.policy import parse_duration
from shoal.core.session_config import TABLES, SessionConfig
from shoal.core.task import DIRECT
from shoal.errors import ConfigError
from shoal.sessions.accounts import Accounts, KnownAccount, collected
from shoal.sessions.sources import read_source, shown

log = logging.getLogger("shoal")


class AccountGroup:
    """One group: its rules for the fleet, and its accounts as last read. Passwords never leave this
    process."""

    def __init__(
        self, name: str, table: SessionConfig, through: str, environ: Mapping[str, str]
    ) -> None:
        self.name = name
        self.table = table
        self.rules = rules_of(name, table, through)
        self._environ = environ
        self._read: dict[str, Accounts] = {}
        self._complaints: dict[str, str] = {}
        self.accounts: Accounts = {}

    @property
    def pool(self) -> str:
        """The name of the group as a pool."""
        return self.rules.name

    @property
    def entries(self) -> list[ExitEntry]:
        """The accounts in the form that the frontier stores."""
        return [ExitEntry(f"{self.pool}#{name}") for name in self.accounts]

    @property
    def is_known(self) -> bool:
        """Whether the accounts were ever read. If not, the fleet is not told about the group."""
        return bool(self.accounts)

    async def read_or_raise(self) -> None:
        """Read the accounts, for the process that begins a crawl. Raises ConfigError, which names
        the source."""
        for source in self.table.sources:
            self._read[source] = await read_source(source, self._environ)
        self.accounts = self._together()

    async def read(self) -> None:
        """Read the accounts again. A source that cannot be read stays as it was."""
        for source in self.table.sources:
            try:
                self._read[source] = await read_source(source, self._environ)
            except ConfigError as error:
                kept = "; it stays as it was" if source in self._read else ""
                self._complain(source, f"{error}{kept}")
            else:
                self._complain(source, "")
        try:
            read = self._together()
        except ConfigError as error:
            self._complain("", f"{error}; all stay as they were" if self.accounts else str(error))
            return
        self._complain("", "")
        self._tell_of_changes(read)
        self.accounts = read

    def _together(self) -> Accounts:
        """The accounts of all sources."""
        if not self._read:
            return {}
        if len(self._read) == 1:
            return next(iter(self._read.values()))
        return collected(
            (shown(source), account)
            for source, accounts in self._read.items()
            for account in accounts.values()
        )

    def _tell_of_changes(self, read: Mapping[str, KnownAccount]) -> None:
        known = self.accounts.keys()
        new, gone = len(read.keys() - known), len(known - read.keys())
        if known and (new or gone):
            words = "session %s: %d accounts, %d new, %d gone"
            log.info(words, self.name, len(read), new, gone)

    def _complain(self, source: str, words: str) -> None:
        """Log a complaint about a source, but only if it differs from the last one."""
        if words and self._complaints.get(source) != words:
            log.warning("session %s: %s", self.name, words)
        self._complaints[source] = words


def rules_of(name: str, table: SessionConfig, through: str) -> PoolRules:
    """The rules of a group for the fleet."""
    return PoolRules(
        name=pool_of_session(name),
        concurrency=table.concurrency,
        through=through,
        timeout_s=parse_duration(table.timeout),
    )


def through_of(name: str, table: SessionConfig, settings: Settings) -> str:
    """The pool whose exits the accounts of a group use: that of the group, or that of the crawl.

    Empty: none, they leave directly. Raises ConfigError for an unknown pool.
    """
    chosen = table.pool or settings.rules.proxy_pool or DIRECT
    if chosen == DIRECT:
        return ""
    if table.pool and chosen not in settings.proxy_pools:
        there_are = ", ".join(settings.proxy_pools) or "none"
        raise ConfigError(
            f"[{TABLES}.{name}]: pool: no such pool: {chosen} (there are: {there_are})"
        )
    return chosen


def groups_of(settings: Settings) -> dict[str, SessionConfig]:
    """The groups that tasks may name and that have a table here."""
    named = settings.rules.sessions
    return {name: table for name, table in settings.session_groups.items() if name in named}
