"""Failures by kind in the SQLite frontier: of a whole crawl, and of each host."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable

import msgspec

from shoal.core.failures import FailureKind, kind_named
from shoal.drivers.sqlite import write_rows
from shoal.frontier.sqlite.statements import SQL

WHOLE_CRAWL = 0
"""The host id that stands for the whole crawl."""


class Failures:
    """The failures counted in a step, written when it ends."""

    def __init__(self) -> None:
        self._tries: Counter[tuple[int, FailureKind]] = Counter()

    def note(self, host_id: int, kind: FailureKind, tries: int = 1) -> None:
        """Count failed tries, for the host and for the whole crawl."""
        self._tries[host_id, kind] += tries
        self._tries[WHOLE_CRAWL, kind] += tries

    def save(self, connection: sqlite3.Connection, crawl_id: int) -> None:
        """Write all counts at once."""
        rows = [(crawl_id, *key, tries) for key, tries in self._tries.items() if tries]
        write_rows(connection, SQL["count_failures"], rows)
        self._tries.clear()


def failures_of(
    connection: sqlite3.Connection, crawl_id: int, host_ids: Iterable[int]
) -> dict[int, dict[FailureKind, int]]:
    """The number of failed tries by host and kind. Kinds of later versions count as OTHER."""
    ids = list(host_ids)
    found: dict[int, dict[FailureKind, int]] = {host_id: {} for host_id in ids}
    values = crawl_id, msgspec.json.encode(ids).decode()
    for host_id, name, tries in connection.execute(SQL["failures"], values):
        kinds, kind = found[host_id], kind_named(name)
        kinds[kind] = kinds.get(kind, 0) + tries
    return found
