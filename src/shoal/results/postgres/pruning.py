"""Pruning (`shoal results prune`) in PostgreSQL: drops the tables of whole months, and deletes
rows from the default tables."""

from __future__ import annotations

import asyncio
from datetime import datetime

from asyncpg.exceptions import DeadlockDetectedError, LockNotAvailableError

from shoal.errors import StorageBusy
from shoal.results.port import Pruned
from shoal.results.postgres.link import Connection
from shoal.results.postgres.schema import (
    LOCK_S,
    PARTITIONED,
    month_of,
    month_tables,
    next_month,
)

LOCK_TRIES = 100


async def prune(before: datetime, connection: Connection, *, detach: bool, dry_run: bool) -> Pruned:
    """Remove readings and page logs from before a moment: whole months, and default table rows."""
    pruned = Pruned()
    old: dict[str, list[str]] = {}
    for table, time in PARTITIONED.items():
        old[table] = await _old_months(table, before, connection)
        # Count before removing anything, as removing takes a lock that all writers wait for.
        count = await _count_older(f"{table}_default", time, before, connection)
        for month in old[table]:
            count += await _count_older(month, time, before, connection)
        setattr(pruned, table, count)
        pruned.tables += old[table]
    if not dry_run:
        await _remove(old, before, connection, detach=detach)
    return pruned


async def _remove(
    old: dict[str, list[str]], before: datetime, connection: Connection, *, detach: bool
) -> None:
    """Delete old rows of the default tables, then remove month by month.

    The names in the SQL are constants or come from the schema itself.
    """
    for table, time in PARTITIONED.items():
        await connection.execute(f"DELETE FROM {table}_default WHERE {time} < $1", before)  # noqa: S608
        for month in old[table]:
            await _remove_month(table, month, connection, detach=detach)


async def _remove_month(table: str, month: str, connection: Connection, *, detach: bool) -> None:
    """Remove the table of one month. Raises StorageBusy if it is in use all the time.

    While this waits for a reader, all writers would wait behind it. So it waits only for a moment,
    lets them go on, and tries again.
    """
    for _ in range(LOCK_TRIES):
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_S}s'")
                await connection.execute(f"ALTER TABLE {table} DETACH PARTITION {month}")
                if not detach:
                    await connection.execute(f"DROP TABLE {month}")
        except (LockNotAvailableError, DeadlockDetectedError):
            await asyncio.sleep(LOCK_S)
        else:
            return
    raise StorageBusy(f"{month}: somebody has been using {table} all the time; try again later")


async def _old_months(table: str, before: datetime, connection: Connection) -> list[str]:
    months = {name: month_of(table, name) for name in await month_tables(connection, table)}
    return [name for name, month in months.items() if month and next_month(month) <= before]


async def _count_older(table: str, time: str, before: datetime, connection: Connection) -> int:
    query = f"SELECT count(*) FROM {table} WHERE {time} < $1"  # noqa: S608
    return int(await connection.fetchval(query, before))
