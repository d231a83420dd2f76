"""Measures rows per second into PostgreSQL, with Shoal's store and with raw statements, in turn.

Prints JSON: a list of rounds, each with the rows per second of every way.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from benchmarks.postgres_server import postgres_server
from shoal.config import History
from shoal.core.records import StoredItem
from shoal.results.port import Batch, Keep
from shoal.results.postgres import PostgresResults
from shoal.results.postgres.rows import host_of, item_columns

ROWS = 30_000
ONE_BY_ONE_ROWS = 3_000

COLUMNS = ("kind", "key", "scraped_at", "content", "fingerprint", "url", "data", "host")
TYPES = ("text", "text", "timestamptz", "bigint", "bigint", "text", "jsonb", "text")
BARE = "bare"
SAME = "items"

Write = Callable[[Sequence[StoredItem]], Awaitable[object]]


def some_items(crawl: str) -> list[StoredItem]:
    """Products of fifty shops, like those of an ordinary crawl."""
    return [
        StoredItem(
            kind="Product",
            key=f"{crawl}-{n * 7919 % ROWS:08d}",
            data=json.dumps(
                {"sku": f"{n:08d}", "title": f"A product with a title {n}", "price": n / 100}
            ).encode(),
            url=f"https://shop{n % 50}.example/product/{n}",
            fingerprint=(n * 0x9E3779B97F4A7C15 % 2**64).to_bytes(8),
            scraped_at=1.8e9 + n / 1000,
        )
        for n in range(ROWS)
    ]


class Raw:
    """Statements as one would write them by hand, for a table with only a key or for Shoal's."""

    def __init__(self, connection: Any, crawl: str, table: str) -> None:
        self._connection = connection
        self._crawl = crawl
        self._table = table
        columns = ", ".join(COLUMNS)
        if table == SAME:
            target = f"{SAME} (crawl, id, first_at, changed_at, {columns})"
            values = f"$1, nextval('items_id'), scraped_at, scraped_at, {columns}"
        else:
            target, values = f"{BARE} (crawl, {columns})", f"$1, {columns}"
        updates = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[2:])
        self._insert = f"INSERT INTO {target} SELECT {values} FROM"
        self._upsert = (
            f"ON CONFLICT (crawl, kind, key) DO UPDATE SET {updates}"
            f" WHERE excluded.scraped_at >= {table}.scraped_at"
        )

    async def copy(self, items: Sequence[StoredItem]) -> None:
        """COPY to a temporary table, then upsert from there."""
        await self._copy(items, f"{self._insert} stage {self._upsert}")

    async def copy_with_history(self, items: Sequence[StoredItem]) -> None:
        """The same, and every row into the history too."""
        own = ", ".join(COLUMNS[:-1])
        await self._copy(
            items,
            f"{self._insert} stage {self._upsert}",
            f"INSERT INTO observations (crawl, {own}) SELECT $1, {own} FROM stage"
            " ON CONFLICT DO NOTHING",
        )

    async def _copy(self, items: Sequence[StoredItem], *statements: str) -> None:
        async with self._connection.transaction():
            rows = list(zip(*self._columns(items), strict=True))
            await self._connection.copy_records_to_table("stage", records=rows, columns=COLUMNS)
            for statement in (*statements, "TRUNCATE stage"):
                await self._connection.execute(statement.replace("$1", f"'{self._crawl}'"))

    async def unnest(self, items: Sequence[StoredItem]) -> None:
        """One statement with an array for each column."""
        arrays = ", ".join(f"${n}::{kind}[]" for n, kind in enumerate(TYPES, 2))
        source = f"unnest({arrays}) AS r ({', '.join(COLUMNS)})"
        statement = f"{self._insert} {source} {self._upsert}"
        await self._connection.execute(statement, self._crawl, *self._columns(items))

    async def one_by_one(self, items: Sequence[StoredItem]) -> None:
        """A statement for each row."""
        for item in items[:ONE_BY_ONE_ROWS]:
            await self.unnest([item])

    def _columns(self, items: Sequence[StoredItem]) -> list[list[Any]]:
        return [*item_columns(items), [host_of(item.url) for item in items]]


async def rows_per_s(write: Write, items: Sequence[StoredItem], batch: int) -> float:
    """Write all items in batches, and return the rows per second."""
    started = time.perf_counter()
    for start in range(0, len(items), batch):
        await write(items[start : start + batch])
    return len(items) / (time.perf_counter() - started)


async def one_round(number: int, address: str, connection: Any) -> dict[str, float]:
    """Measure every way once, each with a crawl of its own. Odd rounds reverse the order."""
    results = PostgresResults(address)

    def shoal(crawl: str, history: History) -> Write:
        keep = Keep(history)
        return lambda items: results.save(crawl, Batch(items=list(items), keep=keep))

    def raw(table: str, how: str) -> Write:
        write: Write = getattr(Raw(connection, f"{table}-{how}-{number}", table), how)
        return write

    ways: dict[str, tuple[Write, int, int]] = {
        "raw, one by one, bare table": (raw(BARE, "one_by_one"), ONE_BY_ONE_ROWS, ROWS),
        "raw, unnest of 500, bare table": (raw(BARE, "unnest"), ROWS, 500),
        "raw, COPY + upsert of 1,000, bare table": (raw(BARE, "copy"), ROWS, 1_000),
        "raw, COPY + upsert of 1,000, same table": (raw(SAME, "copy"), ROWS, 1_000),
        "raw, COPY + upsert of 1,000, same tables, with history": (
            *(raw(SAME, "copy_with_history"), ROWS, 1_000),
        ),
        "shoal, 1,000, no history": (shoal(f"off-{number}", "off"), ROWS, 1_000),
        "shoal, 1,000": (shoal(f"changed-{number}", "changed"), ROWS, 1_000),
        "shoal, 200": (shoal(f"small-{number}", "changed"), ROWS, 200),
    }
    figures = {}
    for name, (write, count, batch) in sorted(ways.items(), reverse=number % 2 == 1):
        figures[name] = await rows_per_s(write, some_items("k")[:count], batch)
    await results.close()
    return figures


async def measure(rounds: int) -> list[dict[str, float]]:
    """Measure several rounds on one server."""
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(COLUMNS, TYPES, strict=True))
    with postgres_server() as address:
        results = PostgresResults(address)
        await results.check()
        await results.close()
        connection = await asyncpg.connect(address)
        await connection.execute(
            f"CREATE TABLE {BARE} (crawl text, {columns}, PRIMARY KEY (crawl, kind, key))"
        )
        await connection.execute(f"CREATE TEMPORARY TABLE stage ({columns})")
        figures = [await one_round(number, address, connection) for number in range(rounds)]
        await connection.close()
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    json.dump(asyncio.run(measure(parser.parse_args().rounds)), sys.stdout)


if __name__ == "__main__":
    main()
