"""The results store in a SQLite file, which may be shared with the frontier and other processes."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict

from shoal.core.files import StoredFile
from shoal.core.records import RejectedItem, StoredItem
from shoal.core.urls import fingerprint_of, number_of
from shoal.drivers.sqlfiles import load_schema
from shoal.drivers.sqlite import Database, transaction, write_rows
from shoal.errors import ConfigError
from shoal.results.port import (
    EVERYTHING,
    STREAM_BYTES,
    STREAM_ROWS,
    Batch,
    KnownPage,
    NearPage,
    PageLog,
    Place,
    Pruned,
    Results,
    RunNote,
    Wanted,
)
from shoal.results.sqlite.rows import (
    Row,
    file_of,
    file_rows,
    item_of,
    item_rows,
    known_page_of,
    page_of,
    page_rows,
    rejected_of,
    rejected_rows,
)
from shoal.results.storable import load_statements, once_each, valid

T = TypeVar("T")

_PACKAGE = "shoal.results.sqlite"
_SCHEMA = load_schema(_PACKAGE, *(f"schema_{version}.sql" for version in range(1, 7)))
_QUERIES = load_statements(_PACKAGE)
_LEAST = -(2**63)
"""A number below that of practically every fingerprint, to start a stream with."""


class SqliteResults(Results):
    """Results in a SQLite file. A batch is one transaction, on disk when `save` returns."""

    def __init__(self, path: Path) -> None:
        self._db = Database(path, "results", _SCHEMA)

    async def save(self, crawl: str, batch: Batch) -> None:
        await self._db.run_durably(partial(_save, crawl, batch))

    async def items_after(
        self, crawl: str, place: int, limit: int, wanted: Wanted = EVERYTHING
    ) -> list[tuple[int, StoredItem]]:
        which = {"crawl": crawl, **asdict(wanted)}
        rows = await self._db.run(partial(_stream_page, "items_after", which, place, limit=limit))
        return [(row[0], item_of(row)) for row in rows]

    async def items_behind(
        self, crawl: str, place: Place, limit: int, kind: str | None, at: float | None
    ) -> list[StoredItem]:
        which = {"crawl": crawl, "after_kind": place[0], "wanted": kind, "at": at}
        query = partial(_stream_page, "items_behind", which, place[1], limit=limit)
        return [item_of(row) for row in await self._db.run(query)]

    async def history(self, crawl: str, kind: str, key: str) -> list[StoredItem]:
        return [
            item_of(row) for row in await self._rows("history", crawl=crawl, kind=kind, key=key)
        ]

    async def count(self, crawl: str) -> dict[str, int]:
        return dict(await self._rows("count_items", crawl=crawl))

    async def pages_of(self, crawl: str, fingerprint: bytes) -> list[PageLog]:
        rows = await self._rows("pages_of", crawl=crawl, fingerprint=number_of(fingerprint))
        return [page_of(row) for row in rows]

    async def tasks_at(self, crawl: str, urls: Sequence[str], limit: int) -> list[bytes]:
        spellings = msgspec.json.encode(urls).decode()
        rows = await self._rows("tasks_at", crawl=crawl, urls=spellings, limit=limit)
        return [fingerprint_of(number) for (number,) in rows]

    async def items_of(self, crawl: str, fingerprint: bytes) -> list[StoredItem]:
        rows = await self._rows("items_of", crawl=crawl, fingerprint=number_of(fingerprint))
        return [item_of(row) for row in rows]

    async def known_pages(
        self, crawl: str, fingerprints: Sequence[bytes]
    ) -> dict[bytes, KnownPage]:
        return await self._db.run(partial(_known_pages, crawl, fingerprints))

    async def mark_gone(self, crawl: str, previous: str, at: float) -> int:
        return await self._write(partial(_mark_gone, crawl, previous, at))

    async def rejected_of(self, crawl: str, fingerprint: bytes) -> list[RejectedItem]:
        rows = await self._rows("rejected_of", crawl=crawl, fingerprint=number_of(fingerprint))
        return [rejected_of(row) for row in rows]

    async def rejected(self, crawl: str) -> AsyncIterator[RejectedItem]:
        async for row in self._stream("rejected_after", crawl=crawl):
            yield rejected_of(row)

    async def files_of(self, crawl: str, fingerprints: Sequence[bytes]) -> dict[bytes, StoredFile]:
        numbers = msgspec.json.encode([number_of(each) for each in fingerprints]).decode()
        rows = await self._rows("files_of", crawl=crawl, fingerprints=numbers)
        return {file.fingerprint: file for file in map(file_of, rows)}

    async def files(self, crawl: str) -> AsyncIterator[StoredFile]:
        async for row in self._stream("files_after", after=_LEAST, crawl=crawl):
            yield file_of(row)

    async def signatures(self, crawl: str) -> AsyncIterator[tuple[bytes, int]]:
        async for _, number, simhash in self._stream("signatures_after", crawl=crawl):
            yield fingerprint_of(number), simhash

    async def mark_near(self, crawl: str, pages: Sequence[NearPage]) -> None:
        def mark(connection: sqlite3.Connection) -> None:
            number = _crawl_number(crawl, connection)
            rows = (
                (number, number_of(p.fingerprint), number_of(p.like), p.distance) for p in pages
            )
            connection.executemany(_QUERIES["mark_near"], rows)

        await self._write(mark)

    async def near_of(self, crawl: str, fingerprint: bytes) -> NearPage | None:
        rows = await self._rows("near_of", crawl=crawl, fingerprint=number_of(fingerprint))
        return NearPage(fingerprint, fingerprint_of(rows[0][0]), rows[0][1]) if rows else None

    async def note_of(self, crawl: str) -> RunNote | None:
        for frontier, targets, *rest in await self._rows("note_of", crawl=crawl):
            return RunNote(frontier, msgspec.json.decode(targets, type=list[str]), *rest)
        return None

    async def note_run(self, crawl: str, note: RunNote) -> None:
        values = {
            "crawl": crawl,
            "frontier": note.frontier,
            "targets": msgspec.json.encode(note.targets).decode(),
            "archive": note.archive,
            "previous": note.previous,
            "file_store": note.file_store,
        }
        await self._write(lambda connection: connection.execute(_QUERIES["note_run"], values))

    async def prune(self, before: float, *, detach: bool = False, dry_run: bool = False) -> Pruned:
        if detach:
            raise ConfigError("a SQLite file has no months to detach: leave out --detach")
        return await self._write(partial(_prune, before, "old" if dry_run else "prune"))

    async def forget(self, crawl: str) -> None:
        await self._write(partial(_forget, crawl))

    async def close(self) -> None:
        await self._db.close()

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def in_transaction(connection: sqlite3.Connection) -> T:
            with transaction(connection):
                return work(connection)

        return await self._db.run(in_transaction)

    async def _rows(self, query: str, **parameters: Any) -> list[Row]:
        return await self._db.run(lambda db: db.execute(_QUERIES[query], parameters).fetchall())

    async def _stream(self, query: str, after: int = 0, **parameters: Any) -> AsyncIterator[Row]:
        """Stream rows page by page, in the order of their ids. No read stays open between pages, so
        a slow reader neither holds a snapshot nor keeps the write-ahead log from being emptied."""
        while rows := await self._db.run(partial(_stream_page, query, parameters, after)):
            for row in rows:
                yield row
            after = rows[-1][0]


def _stream_page(
    query: str,
    parameters: dict[str, Any],
    after: int | str,
    connection: sqlite3.Connection,
    limit: int = STREAM_ROWS,
) -> list[Row]:
    """The next rows after an id or a key: at most `limit`, and about `STREAM_BYTES`. Only their
    last column may be large."""
    rows: list[Row] = []
    size = 0
    values = parameters | {"after": after, "limit": limit}
    with closing(connection.execute(_QUERIES[query], values)) as cursor:
        for row in cursor:
            rows.append(row)
            size += len(row[-1]) if isinstance(row[-1], bytes | str) else 0
            if size >= STREAM_BYTES:
                break
    return rows


def _save(crawl: str, batch: Batch, connection: sqlite3.Connection) -> None:
    try:
        _write(crawl, batch, connection)
    except UnicodeEncodeError:
        # Too rare to check for it beforehand. Without this, the batch could never be saved.
        _write(crawl, valid(batch), connection)


def _write(crawl: str, batch: Batch, connection: sqlite3.Connection) -> None:
    with transaction(connection):
        number = _crawl_number(crawl, connection)
        write_rows(connection, _QUERIES["save_pages"], page_rows(number, batch.pages))
        items = item_rows(number, once_each(batch.items))
        keep = batch.keep
        write_rows(connection, _QUERIES["save_items"], items, keep.refresh_s)
        if keep.has_history:
            query = _QUERIES["save_observations"]
            write_rows(connection, query, items, keep.refresh_s, keep.all_readings)
        write_rows(connection, _QUERIES["save_rejected"], rejected_rows(number, batch.rejected))
        write_rows(connection, _QUERIES["save_files"], file_rows(number, batch.files))


def _crawl_number(crawl: str, connection: sqlite3.Connection) -> int:
    connection.execute(_QUERIES["add_crawl"], {"crawl": crawl})
    (number,) = connection.execute(_QUERIES["crawl_id"], {"crawl": crawl}).fetchone()
    return int(number)


def _known_pages(
    crawl: str, fingerprints: Sequence[bytes], connection: sqlite3.Connection
) -> dict[bytes, KnownPage]:
    known = {}
    for fingerprint in fingerprints:
        values = {"crawl": crawl, "fingerprint": number_of(fingerprint)}
        if rows := connection.execute(_QUERIES["known_page"], values).fetchall():
            known[fingerprint] = known_page_of(rows)
    return known


def _mark_gone(crawl: str, previous: str, at: float, connection: sqlite3.Connection) -> int:
    _crawl_number(crawl, connection)
    names = {"crawl": crawl, "previous": previous}
    connection.execute(_QUERIES["mark_gone"], names | {"at": at})
    connection.execute(_QUERIES["copy_files"], names)
    (gone,) = connection.execute(_QUERIES["count_gone"], names).fetchone()
    return int(gone)


def _prune(before: float, how: str, connection: sqlite3.Connection) -> Pruned:
    pruned = Pruned()
    for table in ("observations", "pages"):
        cursor = connection.execute(_QUERIES[f"{how}_{table}"], {"before": before})
        setattr(pruned, table, cursor.rowcount if how == "prune" else cursor.fetchone()[0])
    return pruned


def _forget(crawl: str, connection: sqlite3.Connection) -> None:
    for part in ("observations", "items", "pages", "rejected", "near", "files", "crawl"):
        connection.execute(_QUERIES[f"forget_{part}"], {"crawl": crawl})
