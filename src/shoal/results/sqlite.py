"""Results in a SQLite file, which the frontier and several processes may share."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shoal.results.port import Batch, PageLog, RejectedItem, Results, StoredItem
from shoal.sqlitedb import Database, load_queries, load_script, transaction
from shoal.urls import FINGERPRINT_BYTES

Row = tuple[Any, ...]
S = TypeVar("S", bound=msgspec.Struct)

# What a stream holds in memory: so many rows, or fewer where they are large.
STREAM_ROWS = 1_000
STREAM_BYTES = 4 * 1024 * 1024

_SCHEMA = load_script("shoal.results", "schema.sql")
_QUERIES = load_queries("shoal.results", "queries.sql")


class SqliteResults(Results):
    """The embedded store. A batch is one transaction, on disk when `save` returns."""

    def __init__(self, path: Path) -> None:
        self._db = Database(path, _SCHEMA)

    async def save(self, crawl: str, batch: Batch) -> None:
        await self._db.run_durably(partial(_save, crawl, batch))

    async def items(self, crawl: str, kind: str | None = None) -> AsyncIterator[StoredItem]:
        async for row in self._stream("items_after", crawl=crawl, kind=kind):
            yield _item(row)

    async def count(self, crawl: str) -> dict[str, int]:
        return dict(await self._rows("count_items", crawl=crawl))

    async def pages_of(self, crawl: str, fingerprint: bytes) -> list[PageLog]:
        rows = await self._rows("pages_of", crawl=crawl, fingerprint=_number(fingerprint))
        return [_page(row) for row in rows]

    async def items_of(self, crawl: str, fingerprint: bytes) -> list[StoredItem]:
        rows = await self._rows("items_of", crawl=crawl, fingerprint=_number(fingerprint))
        return [_item(row) for row in rows]

    async def rejected_of(self, crawl: str, fingerprint: bytes) -> list[RejectedItem]:
        rows = await self._rows("rejected_of", crawl=crawl, fingerprint=_number(fingerprint))
        return [_rejected(row) for row in rows]

    async def rejected(self, crawl: str) -> AsyncIterator[RejectedItem]:
        async for row in self._stream("rejected_after", crawl=crawl):
            yield _rejected(row)

    async def frontier_of(self, crawl: str) -> str:
        rows = await self._rows("frontier_of", crawl=crawl)
        return rows[0][0] if rows else ""

    async def note_frontier(self, crawl: str, address: str) -> None:
        def note(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                values = {"crawl": crawl, "address": address}
                connection.execute(_QUERIES["note_frontier"], values)

        await self._db.run(note)

    async def forget(self, crawl: str) -> None:
        await self._db.run(partial(_forget, crawl))

    async def close(self) -> None:
        await self._db.close()

    async def _rows(self, query: str, **parameters: Any) -> list[Row]:
        return await self._db.run(lambda db: db.execute(_QUERIES[query], parameters).fetchall())

    async def _stream(self, query: str, **parameters: Any) -> AsyncIterator[Row]:
        """Rows in the order of their ids, page by page: between pages no read is open, so a slow
        reader neither holds a snapshot nor keeps the write-ahead log from being emptied."""
        after = 0
        while rows := await self._db.run(partial(_stream_page, query, parameters, after)):
            for row in rows:
                yield row
            after = rows[-1][0]


def _stream_page(
    query: str, parameters: dict[str, Any], after: int, connection: sqlite3.Connection
) -> list[Row]:
    """The next rows after an id. Their last column is the one that may be large."""
    rows: list[Row] = []
    size = 0
    values = parameters | {"after": after, "limit": STREAM_ROWS}
    with closing(connection.execute(_QUERIES[query], values)) as cursor:
        for row in cursor:
            rows.append(row)
            size += len(row[-1])
            if size >= STREAM_BYTES:
                break
    return rows


def _save(crawl: str, batch: Batch, connection: sqlite3.Connection) -> None:
    try:
        _write(crawl, batch, connection)
    except UnicodeEncodeError:
        # Rare enough not to look for it beforehand; refusing would block the batch for ever.
        _write(crawl, _valid(batch), connection)


def _write(crawl: str, batch: Batch, connection: sqlite3.Connection) -> None:
    with transaction(connection):
        connection.execute(_QUERIES["add_crawl"], {"crawl": crawl})
        (number,) = connection.execute(_QUERIES["crawl_id"], {"crawl": crawl}).fetchone()
        connection.executemany(_QUERIES["save_page"], _page_rows(number, batch.pages))
        connection.executemany(_QUERIES["save_item"], _item_rows(number, batch.items))
        connection.executemany(_QUERIES["save_rejected"], _rejected_rows(number, batch.rejected))


def _forget(crawl: str, connection: sqlite3.Connection) -> None:
    with transaction(connection):
        for query in ("forget_items", "forget_pages", "forget_rejected", "forget_crawl"):
            connection.execute(_QUERIES[query], {"crawl": crawl})


def _valid(batch: Batch) -> Batch:
    """The batch with lone surrogates, which no encoding can hold, written out as \\udXXX."""
    return Batch(
        pages=[_with_valid_text(page) for page in batch.pages],
        items=[_with_valid_text(item) for item in batch.items],
        rejected=[_with_valid_text(item) for item in batch.rejected],
    )


def _with_valid_text(record: S) -> S:
    texts = {
        name: value.encode("utf-8", "backslashreplace").decode()
        for name, value in msgspec.structs.asdict(record).items()
        if isinstance(value, str)
    }
    return msgspec.structs.replace(record, **texts)


# Records to rows and back, in the order of the columns in queries.sql.


def _item_rows(crawl: int, items: Iterable[StoredItem]) -> Iterable[Row]:
    return (
        (crawl, i.kind, i.key, _number(i.fingerprint), i.scraped_at, i.url, i.data) for i in items
    )


def _item(row: Row) -> StoredItem:
    _, kind, key, number, scraped_at, url, data = row
    return StoredItem(
        kind=kind,
        key=key,
        data=data,
        url=url,
        fingerprint=_fingerprint(number),
        scraped_at=scraped_at,
    )


def _page_rows(crawl: int, pages: Iterable[PageLog]) -> Iterable[Row]:
    for p in pages:
        identity = (crawl, _number(p.fingerprint), p.started_at, p.attempt, p.worker)
        counts = (p.body_bytes, p.items, p.links)
        yield (*identity, p.duration_s, p.verdict, p.status, *counts, p.url, p.parent, p.error)


def _page(row: Row) -> PageLog:
    (number, started_at, attempt, worker, duration_s, verdict, status, *rest) = row
    (body_bytes, items, links, url, parent, error) = rest
    return PageLog(
        fingerprint=_fingerprint(number),
        url=url,
        worker=worker,
        attempt=attempt,
        started_at=started_at,
        duration_s=duration_s,
        verdict=verdict,
        status=status,
        body_bytes=body_bytes,
        items=items,
        links=links,
        error=error,
        parent=parent,
    )


def _rejected_rows(crawl: int, items: Iterable[RejectedItem]) -> Iterable[Row]:
    for i in items:
        identity = (crawl, _number(i.fingerprint), i.scraped_at, _digest(i))
        yield (*identity, i.kind, i.reason, i.url, i.data)


def _rejected(row: Row) -> RejectedItem:
    _, number, scraped_at, kind, reason, url, data = row
    return RejectedItem(
        kind=kind,
        data=data,
        reason=reason,
        url=url,
        fingerprint=_fingerprint(number),
        scraped_at=scraped_at,
    )


def _digest(item: RejectedItem) -> bytes:
    content = "\0".join((item.kind, item.reason, item.data))
    return hashlib.blake2b(content.encode(), digest_size=8).digest()


def _number(fingerprint: bytes) -> int:
    return int.from_bytes(fingerprint, signed=True)


def _fingerprint(number: int) -> bytes:
    return number.to_bytes(FINGERPRINT_BYTES, signed=True)
