"""Queries about a crawl in the SQLite frontier: single URLs, dead tasks, hosts, workers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec

from shoal.core import task as wire
from shoal.core.failures import kind_named
from shoal.core.records import Robots
from shoal.core.shapes import Trap
from shoal.core.urls import fingerprint_of, number_of
from shoal.frontier import stored_robots
from shoal.frontier.facts import HELD_BACK_REASON
from shoal.frontier.sqlite.alike import traps_of
from shoal.frontier.sqlite.dead import BEFORE_ALL, fitting
from shoal.frontier.sqlite.failures import failures_of
from shoal.frontier.sqlite.statements import DEAD, HELD_BACK, HOST_FIELDS, SQL, STATES
from shoal.frontier.sqlite.step import Clock, crawl_row, moment_of
from shoal.frontier.values import (
    WORKER_SILENT_S,
    Chain,
    DeadFilter,
    DeadPlace,
    Entry,
    Host,
    HostOrder,
    Leased,
    Pulse,
    Record,
    TaskState,
)

_read_pulse = msgspec.json.Decoder(Pulse).decode


def robots_of(connection: sqlite3.Connection, crawl: str, host: str) -> Robots | None:
    """The stored robots.txt of a host; None if no worker has fetched it."""
    crawl_id = crawl_row(connection, crawl)["id"]
    row = connection.execute(SQL["robots"], (crawl_id, host)).fetchone()
    return stored_robots.unpack(row[0]) if row else None


def holders_of(connection: sqlite3.Connection, crawl: str, clock: Clock) -> list[str]:
    """The workers with leases or shares of hosts. Void shares that are still stored do not
    count."""
    row = crawl_row(connection, crawl)
    values = {"crawl_id": row["id"], "now": moment_of(row, clock).now}
    return [worker for (worker,) in connection.execute(SQL["holders"], values)]


def record_of(connection: sqlite3.Connection, crawl: str, entry: Entry) -> Record | None:
    """The record of one task, by its fingerprint."""
    crawl_at = crawl_row(connection, crawl)
    key = crawl_at["id"], number_of(entry.fingerprint)
    row = connection.execute(SQL["find_task"], key).fetchone()
    if row:
        return _record(row, crawl_at["ahead"])
    if not connection.execute(SQL["is_remembered"], key).fetchone()[0]:
        return None
    return Record(
        fingerprint=entry.fingerprint, task=entry.task, state=TaskState.DONE, is_forgotten=True
    )


class _Address(msgspec.Struct):
    """The URL of a task, all that is decoded of it."""

    url: str


_read_address = msgspec.json.Decoder(_Address).decode


def records_of(
    connection: sqlite3.Connection,
    crawl: str,
    site: str,
    is_wanted: Callable[[str], bool],
    limit: int,
) -> list[Record]:
    """Those tasks of a host that are more than a plain GET, and whose URL is wanted."""
    crawl_at = crawl_row(connection, crawl)
    values = {"crawl_id": crawl_at["id"], "host": site}
    rows = connection.execute(SQL["tasks_of_host"], values)
    wanted = (
        row for row in rows if wire.may_be_more(row[1]) and is_wanted(_read_address(row[1]).url)
    )
    return [_record(row, crawl_at["ahead"]) for row in islice(wanted, limit)]


def dead_of(
    connection: sqlite3.Connection,
    crawl: str,
    limit: int,
    after: DeadPlace | None,
    which: DeadFilter,
) -> list[Record]:
    """The matching dead tasks, the newest first."""
    crawl_id = crawl_row(connection, crawl)["id"]
    place = (after.died_at, number_of(after.fingerprint)) if after else BEFORE_ALL
    values = fitting(crawl_id, which, place) | {"limit": limit}
    return [_record(row) for row in connection.execute(SQL["dead_tasks"], values)]


def leased_of(connection: sqlite3.Connection, crawl: str, limit: int) -> list[Leased]:
    """The leased tasks. Those whose leases expire first come first."""
    crawl_at = crawl_row(connection, crawl)
    ahead = crawl_at["ahead"]
    rows = connection.execute(SQL["leased_tasks"], (crawl_at["id"], limit))
    found = []
    for fingerprint, payload, tries, worker, since, due in rows:
        task = wire.decode(payload)
        found.append(
            Leased(
                fingerprint=fingerprint_of(fingerprint),
                url=task.url,
                host=task.site,
                worker=worker,
                since=since - ahead,
                expires=due - ahead,
                tries=tries,
            )
        )
    return found


def hosts_of(
    connection: sqlite3.Connection, crawl: str, limit: int, order: HostOrder
) -> list[Host]:
    """The first hosts in this order."""
    row = crawl_row(connection, crawl)
    found = connection.execute(SQL[f"{order}_hosts"], (row["id"], limit))
    hosts = {at[0]: Host(**dict(zip(HOST_FIELDS, at[1:], strict=True))) for at in found}
    failures = failures_of(connection, row["id"], hosts)
    for host_id, host in hosts.items():
        host.next_at = max(host.next_at - row["ahead"], 0.0)
        host.failures_by_kind = failures[host_id]
    return list(hosts.values())


def chains_of(connection: sqlite3.Connection, crawl: str, limit: int) -> list[Chain]:
    """The chains with the most tasks left."""
    crawl_id = crawl_row(connection, crawl)["id"]
    return [Chain(*row) for row in connection.execute(SQL["longest_chains"], (crawl_id, limit))]


def traps_in(connection: sqlite3.Connection, crawl: str, limit: int) -> list[Trap]:
    """The hosts and shapes from which most links were kept out."""
    return traps_of(connection, crawl_row(connection, crawl)["id"], limit)


def workers_of(connection: sqlite3.Connection, crawl: str, clock: Clock) -> list[Pulse]:
    """The workers heard from recently."""
    row = crawl_row(connection, crawl)
    values = row["id"], moment_of(row, clock).now - WORKER_SILENT_S
    return [_read_pulse(row[0]) for row in connection.execute(SQL["workers"], values)]


def _record(
    row: tuple[Any, ...],
    ahead: float = 0.0,
) -> Record:
    fingerprint, payload, state, attempts, losses, kind, since, reason, detail, due, worker = row
    task = wire.decode(payload)
    task.retry_count = attempts
    return Record(
        fingerprint=fingerprint_of(fingerprint),
        task=task,
        state=STATES[state],
        losses=losses,
        kind=kind_named(kind) if state == DEAD else None,
        died_at=since if state == DEAD else None,
        reason=HELD_BACK_REASON.format(task.chain) if state == HELD_BACK else reason,
        detail=detail,
        due=due and due - ahead,
        worker=worker or "",
    )
