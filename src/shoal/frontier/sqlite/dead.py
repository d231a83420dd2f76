"""Dead tasks in the SQLite frontier: selects, counts, retries and purges them.

Large numbers are moved in parts, as other processes need the write lock, too. The newest go first,
so that a task that dies again after its retry is not met twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from math import inf, nextafter
from typing import Any

from shoal.core.urls import number_of
from shoal.errors import ConfigError
from shoal.frontier.facts import DEAD_AT_ONCE
from shoal.frontier.sqlite.lease import enter
from shoal.frontier.sqlite.statements import SQL
from shoal.frontier.sqlite.step import Clock, Step, as_json, crawl_row, step
from shoal.frontier.values import CANCELLED, CrawlState, DeadFilter

Dead = tuple[int, int, str | None, float, int]
"""A row of the query `dead_ids`."""

Place = tuple[float, int]
"""A place in the order of dead tasks: a time of death, and a fingerprint."""
BEFORE_ALL: Place = (inf, 0)

LEAST = -(1 << 63)
"""The smallest number that a fingerprint can have."""

Part = tuple[int, Place | None]
"""How many tasks were moved, and the place after which to continue. None: nothing is left."""


def fitting(crawl_id: int, which: DeadFilter, after: Place = BEFORE_ALL) -> dict[str, Any]:
    """The parameters of statements with {FITTING}."""
    keys = None
    if which.fingerprints is not None:
        keys = as_json(map(number_of, which.fingerprints))
    died_at, last = after if which.died_by is None else min(after, _just_after(which.died_by))
    asked = {"kind": which.kind, "host": which.host, "fingerprints": keys}
    return {"crawl_id": crawl_id, "died_at": died_at, "last": last, **asked}


def _just_after(moment: float) -> Place:
    return nextafter(moment, inf), LEAST


def count_dead(connection: sqlite3.Connection, crawl: str, which: DeadFilter) -> int:
    """How many dead tasks match."""
    values = fitting(crawl_row(connection, crawl)["id"], which)
    (count,) = connection.execute(SQL["count_dead"], values).fetchone()
    return int(count)


def retry_some(
    connection: sqlite3.Connection, crawl: str, clock: Clock, which: DeadFilter, after: Place
) -> Part:
    """Retry some of the matching dead tasks: each starts afresh."""
    return _move_some(connection, crawl, clock, which, after, _retry)


def retry_these(current: Step, fingerprints: Sequence[bytes]) -> int:
    """Retry those of these tasks that are dead, within a running step. Returns how many."""
    values = fitting(current.id, DeadFilter(fingerprints=fingerprints))
    values["limit"] = len(fingerprints)
    dead = current.connection.execute(SQL["dead_ids"], values).fetchall()
    if dead:
        _retry(current, dead)
    return len(dead)


def purge_some(
    connection: sqlite3.Connection, crawl: str, clock: Clock, which: DeadFilter, after: Place
) -> Part:
    """Purge some of the matching dead tasks: they become dropped."""
    return _move_some(connection, crawl, clock, which, after, _purge)


def _move_some(
    connection: sqlite3.Connection,
    crawl: str,
    clock: Clock,
    which: DeadFilter,
    after: Place,
    move: Callable[[Step, list[Dead]], None],
) -> Part:
    with step(connection, crawl, clock) as current:
        values = fitting(current.id, which, after) | {"limit": DEAD_AT_ONCE}
        dead = connection.execute(SQL["dead_ids"], values).fetchall()
        if dead:
            move(current, dead)
    return len(dead), dead[-1][-2:] if len(dead) == DEAD_AT_ONCE else None


def _retry(current: Step, dead: list[Dead]) -> None:
    if current.state is CrawlState.CANCELLED:
        raise ConfigError(CANCELLED.format(current.row["name"]))
    for row_id, host_id, chain, *_ in dead:
        state, place = enter(current, current.queue_of(host_id), chain)
        current.execute("retry_task", state, place, row_id)
    current.tally.update(dead=-len(dead), waiting=len(dead))
    if current.state is CrawlState.FINISHED:
        current.set_state(CrawlState.RUNNING)


def _purge(current: Step, dead: list[Dead]) -> None:
    for row_id, *_ in dead:
        current.execute("purge_task", row_id)
        current.execute("strip_cookies", row_id)
    current.tally.update(dead=-len(dead), dropped=len(dead))
