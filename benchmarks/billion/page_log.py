"""What a page leaves in PostgreSQL: its line in the page log, and an item. Bytes, and rows/s."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

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
    """What saving cost, per page."""

    pages_per_s: float
    """One client."""
    bytes_per_page: float
    index_bytes: float
    """Of these, those of indexes."""


def measure(progress: Callable[[str], None] = lambda _: None) -> dict[str, Saved]:
    """The page log alone, and with an item for each page."""
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
    began = time.perf_counter()
    for start in range(0, ROWS, BATCH):
        own = items[start : start + BATCH]
        pages = [_page(item) for item in own]
        await results.save(CRAWL, Batch(pages=pages, items=own if has_items else []))
    taken_s = time.perf_counter() - began
    await results.close()
    data, indexes = (a - b for a, b in zip(await _sizes(address), before, strict=True))
    return Saved(
        pages_per_s=ROWS / taken_s,
        bytes_per_page=(data + indexes) / ROWS,
        index_bytes=indexes / ROWS,
    )


def _page(item: StoredItem) -> PageLog:
    """The page that an item was on."""
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
    connection = await asyncpg.connect(address)
    try:
        (sizes,) = await connection.fetch(_SIZES)
        return int(sizes[0] or 0), int(sizes[1] or 0)
    finally:
        await connection.close()
