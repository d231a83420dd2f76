"""Where items and the page log go: one port, and a store for each kind of address."""

from __future__ import annotations

from shoal.addresses import masked
from shoal.errors import ConfigError
from shoal.results.port import Results
from shoal.results.sqlite import SqliteResults
from shoal.sqlitedb import path_of


def open_results(address: str) -> Results:
    """The store at an address. Nothing is opened before it is used. Raises ConfigError."""
    if address.startswith("sqlite:"):
        return SqliteResults(path_of(address))
    raise ConfigError(f"no results store for {masked(address)!r} (supported: sqlite:///path.db)")
