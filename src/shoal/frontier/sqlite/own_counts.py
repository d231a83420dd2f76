"""The spiders' own counters in the SQLite frontier."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from shoal.core.own_counts import added
from shoal.drivers.sqlite import write_rows
from shoal.frontier.sqlite.statements import SQL


def add_own_counts(
    connection: sqlite3.Connection, crawl_id: int, parts: Iterable[Mapping[str, int]]
) -> None:
    """Add what tries have counted. Counts by more names than allowed go to `OTHERS`."""
    total = added([own_counts_of(connection, crawl_id), *parts])
    rows = [(crawl_id, name, times) for name, times in total.items()]
    write_rows(connection, SQL["keep_own_counts"], rows)


def own_counts_of(connection: sqlite3.Connection, crawl_id: int) -> dict[str, int]:
    """The counts of a crawl so far, by name."""
    return dict(connection.execute(SQL["own_counts"], (crawl_id,)))
