"""Dead tasks on SQLite: some of them are listed, counted, retried or purged.

Of many, a part at a time: others want the write lock, too. The newest go first, so that one which
is retried and dies anew meanwhile is not met again.
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
"""A place in the order of dead tasks: when one died, and its fingerprint."""
BEFORE_ALL: Place = (inf, 0)

LEAST = -(1 << 63)
"""No fingerprint is a smaller number."""

Part = tuple[int, Place | None]
"""How many were moved, and after which place to go on. None: that was all."""


def fitting(crawl_id: int, which: DeadFilter, after: Place = BEFORE_ALL) -> dict[str, Any]:
    """What the statements that say FITTING ask for."""
    keys = None
    if which.fingerprints is not None:
        keys = as_json(map(number_of, which.fingerprints))
    died_at, last = after if which.died_by is None else min(after, _just_after(which.died_by))
    asked = {"kind": which.kind, "host": which.host, "fingerprints": keys}
    return {"crawl_id": crawl_id, "died_at": died_at, "last": last, **asked}


def _just_after(moment: float) -> Place:
    return nextafter(moment, inf), LEAST


def count_dead(connection: sqlite3.Connection, crawl: str, which: DeadFilter) -> int:
    """How many dead tasks fit."""
    values = fitting(crawl_row(connection, crawl)["id"], which)
    (count,) = connection.execute(SQL["count_dead"], values).fetchone()
    return int(count)


def retry_some(
    connection: sqlite3.Connection, crawl: str, clock: Clock, which: DeadFilter, after: Place
) -> Part:
    """Give some dead tasks a fresh start."""
    return _move_some(connection, crawl, clock, which, after, _retry)


def retry_these(current: Step, fingerprints: Sequence[bytes]) -> int:
    """Give those of these that are dead a fresh start, in a step that is under way. Returns how
    many."""
    values = fitting(current.id, DeadFilter(fingerprints=fingerprints))
    values["limit"] = len(fingerprints)
    dead = current.connection.execute(SQL["dead_ids"], values).fetchall()
    if dead:
        _retry(current, dead)
    return len(dead)


def purge_some(
    connection: sqlite3.Connection, crawl: str, clock: Clock, which: DeadFilter, after: Place
) -> Part:
    """Drop some dead tasks."""
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
