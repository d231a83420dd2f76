"""Where items and the page log go: one port, and a store for each kind of address."""

from __future__ import annotations

import re

from shoal.errors import ConfigError
from shoal.results.port import Results
from shoal.results.sqlite import SqliteResults
from shoal.sqlitedb import path_of

# Greedy up to the last @: a password may hold what a well-formed address would escape.
_PASSWORD = re.compile(r"(?<=://)([^:/?#]*:).*@|(?<=[?&]password=)[^&#]*")


def open_results(address: str) -> Results:
    """The store at an address. Nothing is opened before it is used. Raises ConfigError."""
    if address.startswith("sqlite:"):
        return SqliteResults(path_of(address))
    shown = _PASSWORD.sub(lambda match: f"{match[1]}***@" if match[1] else "***", address)
    raise ConfigError(f"no results store for {shown!r} (supported: sqlite:///path.db)")
