"""Removing the past: months as whole tables, and what lies in no month's table row by row."""

from __future__ import annotations

from datetime import datetime

from shoal.results.port import Pruned
from shoal.results.postgres.link import Connection
from shoal.results.postgres.schema import PARTITIONED, month_of, month_tables, next_month


async def prune(before: datetime, connection: Connection, *, detach: bool, dry_run: bool) -> Pruned:
    """Remove readings and page logs from before a moment, as far as whole months are."""
    pruned = Pruned()
    async with connection.transaction():
        for table, time in PARTITIONED.items():
            count = 0
            for month in await _old_months(table, before, connection):
                count += await connection.fetchval(f"SELECT count(*) FROM {month}")  # noqa: S608
                pruned.tables.append(month)
                if not dry_run:
                    await connection.execute(f"ALTER TABLE {table} DETACH PARTITION {month}")
                if not dry_run and not detach:
                    await connection.execute(f"DROP TABLE {month}")
            count += await _remove_loose(f"{table}_default", time, before, connection, dry_run)
            setattr(pruned, table, count)
    return pruned


async def _old_months(table: str, before: datetime, connection: Connection) -> list[str]:
    months = {name: month_of(table, name) for name in await month_tables(connection, table)}
    return [name for name, month in months.items() if month and next_month(month) <= before]


async def _remove_loose(
    table: str, time: str, before: datetime, connection: Connection, dry_run: bool
) -> int:
    """The rows of no month. Names of tables and columns are our own."""
    old = f"FROM {table} WHERE {time} < $1"
    if dry_run:
        return int(await connection.fetchval(f"SELECT count(*) {old}", before))
    removed = f"WITH gone AS (DELETE {old} RETURNING 1) SELECT count(*) FROM gone"  # noqa: S608
    return int(await connection.fetchval(removed, before))
