"""Audits a SQLite frontier's file: do its counters agree with the tasks that they count?"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from shoal.frontier.sqlite.statements import HELD_BACK
from shoal.frontier.values import TaskState

_NUMBERS = {state: str(number) for number, state in enumerate(TaskState)}
_HOST_STATES = (TaskState.WAITING, TaskState.LEASED, TaskState.DONE)

_COUNTED = """
SELECT {name}, '{counter}', {counter}, COUNT(tasks.id) AS found
FROM {table} LEFT JOIN {tasks} AS tasks
ON tasks.{table_id} = {table}.id AND tasks.state IN ({states})
GROUP BY {table}.id HAVING {counter} != found
"""

_AT_HOSTS = """(
    SELECT tasks.id, COALESCE(lanes.host_id, tasks.host_id) AS host_id, state
    FROM tasks LEFT JOIN lanes ON lanes.id = -tasks.host_id
    WHERE lanes.id IS NULL OR state != 0
)"""
"""Tasks with their hosts, without those that wait in a lane, which are counted there."""

_AT_LANES = "(SELECT id, -host_id AS lane_id, state FROM tasks WHERE host_id < 0)"

_LANES = """
SELECT 'lane', id, 'has work and no turn' FROM lanes WHERE waiting > 0 AND ready_at IS NULL
UNION ALL
SELECT 'lane', id, 'has a turn and no work' FROM lanes WHERE waiting = 0 AND ready_at IS NOT NULL
UNION ALL
SELECT 'lane', id, 'is of a host that is gone'
FROM lanes WHERE host_id NOT IN (SELECT id FROM hosts WHERE crawl_id = lanes.crawl_id)
UNION ALL
SELECT 'passage', task_id, 'of a task that has ended or is gone'
FROM passages WHERE task_id NOT IN (SELECT id FROM tasks WHERE state < 3)
UNION ALL
SELECT 'task', id, 'is leased without an exit' FROM tasks
WHERE host_id < 0 AND state = 2
  AND id NOT IN (SELECT task_id FROM passages WHERE exit IS NOT NULL)
UNION ALL
SELECT 'passage', task_id, 'is lent to nobody' FROM passages
WHERE exit IS NOT NULL AND task_id NOT IN (SELECT id FROM tasks WHERE state = 2)
"""

_LENT = """
SELECT 'exit', id, 'lent ' || json_extract(body, '$.leased') || ' times'
FROM exits WHERE json_extract(body, '$.leased') != (
    SELECT COUNT(*) FROM passages WHERE exits.id IN (passages.exit, passages.account)
)
UNION ALL
SELECT 'pool', name, 'lent ' || json_extract(spent, '$.leased') || ' times'
FROM pools WHERE json_extract(spent, '$.leased') != (
    SELECT COUNT(*) FROM passages
    WHERE passages.pool = pools.name AND passages.exit <> ''
      OR passages.account > pools.name || '#' AND passages.account < pools.name || '$'
)
UNION ALL
SELECT 'account', exits.id, 'is with somebody and not in use, or the other way round'
FROM exits JOIN accounts ON accounts.id = exits.id
WHERE (json_extract(exits.body, '$.leased') > 0) != (accounts.worker <> '')
UNION ALL
SELECT 'pair', host || ' ' || exit, 'is tried by nobody'
FROM pairs WHERE json_extract(body, '$.is_tried') AND NOT EXISTS (
    SELECT 1 FROM passages WHERE passages.exit = pairs.exit
)
"""

_STRAY = """
SELECT 'task', tasks.id, 'is with a host of another crawl'
FROM (
    SELECT tasks.id, tasks.crawl_id, COALESCE(lanes.host_id, tasks.host_id) AS host_id
    FROM tasks LEFT JOIN lanes ON lanes.id = -tasks.host_id
) AS tasks LEFT JOIN hosts ON hosts.id = tasks.host_id
WHERE hosts.crawl_id IS NOT tasks.crawl_id
"""

_LEFT_BEHIND = """
SELECT 'worker', worker, 'is of a crawl that is gone'
FROM workers WHERE crawl_id NOT IN (SELECT id FROM crawls)
UNION ALL
SELECT 'robots.txt', host_id, 'is of a host that is gone'
FROM robots WHERE host_id NOT IN (SELECT id FROM hosts)
"""

_STUCK = """
SELECT 'host', host, 'has work and room, and no turn'
FROM hosts WHERE ready_at IS NULL AND waiting > 0 AND leased = shared
"""

_SHARED = """
SELECT 'host', host, shared || ' shared leases are counted'
FROM hosts WHERE shared != (
    SELECT COUNT(*) FROM tasks WHERE tasks.host_id = hosts.id AND tasks.state = 2 AND tasks.shared
)
UNION ALL
SELECT 'host', host, sharers || ' sharers are counted'
FROM hosts WHERE sharers != (SELECT COUNT(*) FROM shares WHERE shares.host_id = hosts.id)
UNION ALL
SELECT 'share', worker, 'is of a host that is gone'
FROM shares WHERE host_id NOT IN (SELECT id FROM hosts)
"""


_CHAINS = f"""
SELECT 'chain', chain, SUM(state = {HELD_BACK}) || ' wait, ' || SUM(state >= 0) || ' are under way'
FROM tasks WHERE chain IS NOT NULL AND state < 3
GROUP BY crawl_id, chain HAVING SUM(state >= 0) != 1
UNION ALL
SELECT 'task', id, 'is held back without a chain'
FROM tasks WHERE state = {HELD_BACK} AND chain IS NULL
"""


def sqlite_faults(path: Path) -> list[tuple[Any, ...]]:
    """Everything in the file that does not add up; empty if all is well."""
    with closing(sqlite3.connect(path)) as connection:
        damage = [row for row in connection.execute("PRAGMA integrity_check") if row != ("ok",)]
        return damage + [row for audit in _audits() for row in connection.execute(audit)]


def _audits() -> list[str]:
    crawls = {"table": "crawls", "name": "name", "table_id": "crawl_id", "tasks": "tasks"}
    hosts = {"table": "hosts", "name": "host", "table_id": "host_id", "tasks": _AT_HOSTS}
    lanes = {"table": "lanes", "name": "pool", "table_id": "lane_id", "tasks": _AT_LANES}
    of_crawl = _NUMBERS | {TaskState.WAITING: f"{HELD_BACK}, {_NUMBERS[TaskState.WAITING]}"}
    return [
        _COUNTED.format(**crawls, counter="added", states=", ".join(of_crawl.values())),
        *(_COUNTED.format(**crawls, counter=s, states=of_crawl[s]) for s in of_crawl),
        *(_COUNTED.format(**hosts, counter=s, states=_NUMBERS[s]) for s in _HOST_STATES),
        _COUNTED.format(**lanes, counter="waiting", states=_NUMBERS[TaskState.WAITING]),
        _LANES,
        _LENT,
        _STRAY,
        _LEFT_BEHIND,
        _STUCK,
        _SHARED,
        _CHAINS,
    ]
