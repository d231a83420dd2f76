"""Measures bytes and rows/s of what a page leaves in PostgreSQL: a row of the page log, an item."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from benchmarks.billion.web import NEW_PER_PAGE
from benchmarks.postgres_rows import ROWS, some_items
from benchmarks.postgres_server import new_database, postgres_server
from shoal.core.records import StoredItem
from shoal.core.urls import fingerprint
from shoal.results.port import Batch, PageLog
from shoal.results.postgres import PostgresResults

CRAWL = "billion"
BATCH = 200

_SIZES = """
    SELECT sum(pg_table_size(c.oid)), sum(pg_indexes_size(c.oid))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of saving, per page."""

    pages_per_s: float
    """With one client. Depends on what else the machine does."""
    server_us: float
    """CPU of PostgreSQL."""
    bytes_per_page: float
    index_bytes: float
    """The part of `bytes_per_page` that indexes take."""


def measure(progress: Callable[[str], None] = lambda _: None) -> dict[str, Saved]:
    """Measure the page log alone, and with an item for each page."""
    found = {}
    with postgres_server() as server:
        for name, has_items in (("page log", False), ("page log and an item", True)):
            progress(f"PostgreSQL: {name}, {ROWS:,} pages")
            with new_database(server) as address:
                found[name] = asyncio.run(_save(address, has_items=has_items))
    return found


async def _save(address: str, *, has_items: bool) -> Saved:
    results = PostgresResults(address)
    await results.check()
    items = some_items("k")
    before = await _sizes(address)
    began, spent_s = time.perf_counter(), await _cpu_s(address)
    for start in range(0, ROWS, BATCH):
        own = items[start : start + BATCH]
        pages = [_page(item) for item in own]
        await results.save(CRAWL, Batch(pages=pages, items=own if has_items else []))
    taken_s = time.perf_counter() - began
    # Read before the connection closes: the CPU time of its server process is lost with it.
    spent_s = await _cpu_s(address) - spent_s
    await results.close()
    data, indexes = (a - b for a, b in zip(await _sizes(address), before, strict=True))
    return Saved(
        pages_per_s=ROWS / taken_s,
        server_us=spent_s / ROWS * 1e6,
        bytes_per_page=(data + indexes) / ROWS,
        index_bytes=indexes / ROWS,
    )


def _page(item: StoredItem) -> PageLog:
    """The page log's row for the page of an item."""
    return PageLog(
        fingerprint=item.fingerprint,
        url=item.url,
        worker="worker-1",
        attempt=1,
        started_at=item.scraped_at,
        duration_s=0.5,
        verdict="done",
        status=200,
        body_bytes=11_000,
        items=1,
        links=NEW_PER_PAGE,
        parent=fingerprint(item.key).hex(),
        digest=fingerprint(item.url),
    )


async def _sizes(address: str) -> tuple[int, int]:
    """Bytes of tables and of indexes."""
    data, indexes = await _row(address, _SIZES)
    return int(data or 0), int(indexes or 0)


async def _cpu_s(address: str) -> float:
    """User and system time of all current processes of the server."""
    (file,) = await _row(address, "SELECT pg_read_file('postmaster.pid')")
    server, ticks = file.split()[0], 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # The process has ended meanwhile.
            # The second field is a name in brackets that may contain anything.
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += (int(fields[11]) + int(fields[12])) * (fields[1] == server)
    return ticks / os.sysconf("SC_CLK_TCK")


async def _row(address: str, question: str) -> Sequence[Any]:
    connection = await asyncpg.connect(address)
    try:
        (row,) = await connection.fetch(question)
        return tuple(row)
    finally:
        await connection.close()
