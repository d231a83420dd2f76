"""The statements of the SQLite frontier: its .sql files, filled in with values declared in Python.

In a statement, {NAME} stands for `FACTS["NAME"]`. Numbers have to be part of the text: SQLite uses
an index with `WHERE state = 0` only for a statement that contains this condition literally. Schemas
contain the numbers themselves, since they describe existing files; tests check that the two agree.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

from shoal.core.counters import COUNTERS
from shoal.core.exit_policy import BUSY_WAIT_S
from shoal.core.failures import FailureKind
from shoal.core.policy import SUSPECT_AFTER
from shoal.drivers.sqlfiles import load_queries, load_schema
from shoal.frontier.facts import DROPPED_BY_CANCEL, PURGED
from shoal.frontier.sqlite.hosts import HostSchedule
from shoal.frontier.values import CrawlState, Host, TaskState

_PACKAGE = "shoal.frontier.sqlite"
_NAME = re.compile(r"\{([A-Z_]+)\}")

SCHEMA = load_schema(_PACKAGE, "schema.sql", *(f"schema_{version}.sql" for version in range(2, 12)))

HELD_BACK, WAITING, DELAYED, LEASED, DONE, DEAD, DROPPED = range(-1, 6)
"""The states of a task in its table. A held-back task waits for an earlier task of its chain: the
crawl counts it as waiting, its host does not."""

STATES = {HELD_BACK: TaskState.WAITING, **dict(enumerate(TaskState))}

ENDED_FROM = DONE
"""This state and all higher ones are final."""


def _listed(columns: Sequence[str], form: str = "{0}") -> str:
    return ", ".join(form.format(column) for column in columns)


_NOT_IN_THE_ROW = ("failures_by_kind", "dry_s")
HOST_FIELDS = [name for name in Host.__struct_fields__ if name not in _NOT_IN_THE_ROW]
"""The fields of a `Host` that its row holds."""
_HOST_COLUMNS = ["id", "crawl_id", *HOST_FIELDS]
_WAITING_IN_ALL = """waiting + COALESCE(
    (SELECT SUM(waiting) FROM lanes WHERE lanes.host_id = hosts.id), 0
) AS waiting"""
_SHOWN = _listed([_WAITING_IN_ALL if name == "waiting" else name for name in _HOST_COLUMNS])
_HOSTS = f"(SELECT {_SHOWN} FROM hosts)"  # noqa: S608
"""The hosts, whose `waiting` includes the tasks in their lanes."""


_IN_USE = """e.is_listed AND e.out_until <= :now
  AND (e.free_at IS NULL OR e.free_at > :now OR COALESCE(a.worker, '') NOT IN ('', :worker))"""
"""Whether only other requests keep a worker from using an account. NULL if there is none."""


_KIND = f"""CASE WHEN kind IN ({", ".join(f"'{kind}'" for kind in FailureKind)})
    THEN kind ELSE '{FailureKind.OTHER}' END"""
"""The kind of a dead task, as `kind_named` has it."""
_FITTING = f"""crawl_id = :crawl_id AND state = {DEAD}
  AND (since, fingerprint) < (:died_at, :last)
  AND (:kind IS NULL OR {_KIND} = :kind)
  AND (:fingerprints IS NULL OR fingerprint IN (SELECT value FROM json_each(:fingerprints)))
  AND (:host IS NULL OR host_id IN (
    SELECT id FROM hosts WHERE hosts.crawl_id = :crawl_id AND hosts.host = :host
    UNION ALL
    SELECT -lanes.id FROM lanes JOIN hosts ON hosts.id = lanes.host_id
    WHERE hosts.crawl_id = :crawl_id AND hosts.host = :host
  ))"""  # noqa: S608
"""Whether a task is dead, matches a `DeadFilter`, and comes after a place in the order."""


PART = "frontier"
"""What the tables of a file are for: the key of its version."""

FACTS = {
    "FILE_VERSION": f"(SELECT version FROM versions WHERE part = '{PART}') AS file_version",  # noqa: S608
    **{state.name: number for number, state in enumerate(TaskState)},
    "ENDED_FROM": ENDED_FROM,
    "SUSPECT_AFTER": SUSPECT_AFTER,
    "NEW": CrawlState.NEW.value,
    "PURGED": PURGED,
    "DROPPED_BY_CANCEL": DROPPED_BY_CANCEL,
    "COUNTED": _listed(COUNTERS, "{0} = {0} + :{0}"),
    "SCHEDULE": _listed(HostSchedule.__struct_fields__),
    "SCHEDULE_SAVED": _listed(HostSchedule.__struct_fields__[1:], "{0} = s.{0}"),
    "HOST": _listed(["id", *HOST_FIELDS]),
    "HOSTS": _HOSTS,
    "IN_USE": f"COALESCE({_IN_USE}, 0)",
    "BUSY_WAIT_S": BUSY_WAIT_S,
    "LANE": "lanes.id, lanes.host_id, hosts.host, lanes.pool, lanes.waiting, lanes.next_at, body",
    "RECORD": """fingerprint, task, state, attempts, losses, kind, since, reason, detail, due,
    worker""",
    "FITTING": _FITTING,
}


def _filled(statement: str) -> str:
    return _NAME.sub(lambda name: str(FACTS[name[1]]), statement)


SQL = {
    name: _filled(text)
    for file in ("queries.sql", "exits.sql", "accounts.sql")
    for name, text in load_queries(_PACKAGE, file).items()
}


def add_missing_counters(connection: sqlite3.Connection) -> None:
    """Add the missing columns of counters to the table of crawls: all in a new file, the newer ones
    in a file of an earlier version. Runs while a file is opened, with the write lock held."""
    columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(crawls)")}
    for name in COUNTERS:
        if name not in columns:
            connection.execute(f"ALTER TABLE crawls ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0")
