"""The page on tables names every column and index there is, and its queries find what is stored."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.core.records import RejectedItem, StoredItem
from shoal.results import open_results
from shoal.results.port import Batch, PageLog
from support.markdown import ROOT, Block, blocks, table_after
from support.postgres_servers import PostgresServer

PAGE = ROOT / "docs/guides/schema.md"
DATABASE = "schema"
SITE, OTHER = "https://shop.example", "https://other.example:8443"
HOUR, DAY = 3600.0, 86400.0

_NAME = re.compile(r"-- (.*)\n")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")

EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "The latest items of a kind": [
        ("H1-0005", "Brass stool", 40.0),
        ("H1-0003", "Oak tray", 5.0),
        ("H1-0002", "Cedar box", 20.0),
        ("H1-0001", "Copper kettle", 48.97),
    ],
    "The price history of one product": [(50.0,), (45.0,), (40.0,)],
    "What changed since yesterday": [("Product", "H1-0005", f"{SITE}/H1-0005")],
    "Prices that changed since yesterday, before and after": [("H1-0005", 45.0, 40.0)],
    "What is new since yesterday": [
        ("Product", "H1-0003", f"{OTHER}/H1-0003"),
        ("Review", "r1", f"{SITE}/r1"),
    ],
    "Items per host": [("shop.example", 4), ("other.example:8443", 1)],
    "Not seen for a week": [("Product", "H1-0001", f"{SITE}/H1-0001")],
    "What is gone, and since when": [("Product", "H1-0009", f"{SITE}/H1-0009")],
    "Pages that failed since yesterday, and why": [
        ("retry", 500, "HTTP 500", 2, f"{SITE}/a"),
        ("dead", None, "no answer", 1, f"{SITE}/c"),
    ],
    "Items that were rejected, and why": [("Product", "price: expected float", 1, f"{SITE}/x")],
}


def named(found: Iterable[Block]) -> dict[str, str]:
    """Queries by what their first line says they answer."""
    return {name[1]: block.text for block in found if (name := _NAME.match(block.text))}


_SQL = [block for block in blocks(PAGE) if block.language == "sql"]
_SQLITE_FROM = PAGE.read_text("utf-8").split("\n## In SQLite\n")[0].count("\n")
ON_POSTGRES = named(block for block in _SQL if block.line < _SQLITE_FROM)
ON_SQLITE = named(block for block in _SQL if block.line > _SQLITE_FROM)
UNNAMED = [block for block in _SQL if not _NAME.match(block.text)]


def product(key: str, title: str, price: float, at: float, site: str = SITE) -> StoredItem:
    return item("Product", key, {"price": price, "title": title}, at, site)


def item(kind: str, key: str, fields: dict[str, Any], at: float, site: str = SITE) -> StoredItem:
    return StoredItem(
        kind=kind,
        key=key,
        data=msgspec.json.encode(fields),
        url=f"{site}/{key}",
        fingerprint=key.encode().rjust(8)[-8:],
        scraped_at=at,
    )


def page(path: str, at: float, verdict: str, status: int | None, error: str) -> PageLog:
    return PageLog(
        fingerprint=path.encode().rjust(8),
        url=f"{SITE}{path}",
        worker="here:1",
        attempt=1,
        started_at=at,
        duration_s=0.1,
        verdict=verdict,
        status=status,
        error=error,
    )


def life_of_a_shop(now: float) -> list[Batch]:
    """What a crawl of ten days has stored, in the order of the days."""
    rejected = RejectedItem(
        kind="Product",
        data="{}",
        reason="price: expected float",
        url=f"{SITE}/x",
        fingerprint=b"rejected",
        scraped_at=now - HOUR,
    )
    first = [
        product("H1-0001", "Copper kettle", 48.97, now - 10 * DAY),
        product("H1-0002", "Cedar box", 20.0, now - 10 * DAY + 1),
        product("H1-0005", "Brass stool", 50.0, now - 10 * DAY + 2),
    ]
    last = [
        product("H1-0005", "Brass stool", 40.0, now - 2 * HOUR),
        product("H1-0003", "Oak tray", 5.0, now - 3 * HOUR, OTHER),
        product("H1-0002", "Cedar box", 20.0, now - 4 * HOUR),
        item("Review", "r1", {"stars": 3}, now - 2 * HOUR),
    ]
    pages = [
        page("/a", now - 2 * HOUR, "retry", 500, "HTTP 500"),
        page("/b", now - 2 * HOUR, "retry", 500, "HTTP 500"),
        page("/c", now - HOUR, "dead", None, "no answer"),
        page("/d", now - HOUR, "done", 200, ""),
        page("/e", now - 3 * DAY, "dead", 403, "HTTP 403"),
    ]
    middle = [product("H1-0005", "Brass stool", 45.0, now - 3 * DAY)]
    return [Batch(items=first), Batch(items=middle), Batch(pages, last, [rejected])]


async def fill(address: str) -> None:
    """Store the life of a shop, and something of another crawl that no query may find."""
    results = open_results(address)
    try:
        for batch in life_of_a_shop(time.time()):
            await results.save("shop", batch)
            await results.save("another", batch)
        gone = product("H1-0009", "Tin cup", 3.0, time.time() - DAY)
        await results.save("shop-monday", Batch(items=[gone]))
        await results.mark_gone("shop-tuesday", "shop-monday", time.time())
    finally:
        await results.close()


@pytest.fixture(scope="module")
def filled(postgres: PostgresServer) -> PostgresServer:
    asyncio.run(fill(postgres.new_database(DATABASE)))
    return postgres


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "shoal.db"
    asyncio.run(fill(f"sqlite:///{path}"))
    return path


def without_times(rows: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Numbers as floats, and no times: they are another with each run."""
    return [tuple(_plain(value) for value in row if not _is_time(value)) for row in rows]


def _is_time(value: Any) -> bool:
    is_text = isinstance(value, str) and _MOMENT.fullmatch(value) is not None
    return is_text or isinstance(value, datetime)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | None) else float(value)


def test_both_databases_are_asked_the_same() -> None:
    assert list(ON_POSTGRES) == list(ON_SQLITE) == list(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_queries_on_postgresql(filled: PostgresServer, name: str) -> None:
    rows = filled.execute(ON_POSTGRES[name], database=DATABASE)

    assert without_times(rows) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_queries_on_sqlite(sqlite_file: Path, name: str) -> None:
    with closing(sqlite3.connect(sqlite_file)) as connection:
        rows = connection.execute(ON_SQLITE[name]).fetchall()

    assert without_times(rows) == EXPECTED[name]


def test_other_statements_run(filled: PostgresServer) -> None:
    assert UNNAMED
    for block in UNNAMED:
        filled.execute(block.text, database=DATABASE)


def test_every_column_is_named(filled: PostgresServer) -> None:
    query = """
        SELECT c.relname, a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
            AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
    """
    columns: dict[str, set[str]] = {}
    for table, column in filled.execute(query, database=DATABASE):
        columns.setdefault(table, set()).add(column)

    assert {table: documented_columns(table) for table in columns} == columns


def documented_columns(table: str) -> set[str]:
    rows = table_after(PAGE, f"\n`{table}`: ")
    return {name for names, *_ in rows for name in names.split()}


def test_every_index_is_named(filled: PostgresServer) -> None:
    query = """
        SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        JOIN pg_class AS t ON t.oid = i.indrelid
        WHERE t.relnamespace = 'public'::regnamespace AND NOT i.indisprimary
            AND NOT t.relispartition AND c.relname <> 'items_by_brand'
    """
    indexes = {name for (name,) in filled.execute(query, database=DATABASE)}

    assert {name for name, _ in table_after(PAGE, "## Indexes")} == indexes
