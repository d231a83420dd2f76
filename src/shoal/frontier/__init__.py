"""Frontiers: the shared queue, by address."""

from __future__ import annotations

from shoal.errors import ConfigError
from shoal.frontier.port import Frontier
from shoal.frontier.sqlite import SqliteFrontier
from shoal.sqlitedb import path_of


def open_frontier(address: str) -> Frontier:
    """The frontier at an address. Nothing is touched before the first call."""
    scheme = address.partition(":")[0]
    if scheme == "sqlite":
        return SqliteFrontier(path_of(address))
    raise ConfigError(f"no frontier for {scheme!r} addresses (supported: sqlite:///path.db)")
