"""Saves a batch in PostgreSQL: in one statement, or in parts if large or if a row is rejected."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from shoal.core.records import SHOWN_CHARACTERS, RejectedItem, StoredItem
from shoal.results.port import Batch, Keep
from shoal.results.postgres.failures import RowRejected, noticing_rejections
from shoal.results.postgres.link import Connection
from shoal.results.postgres.rows import (
    CONTENT,
    file_arrays,
    file_columns,
    host_of,
    item_columns,
    moment,
    page_arrays,
    page_columns,
    rejected_columns,
    storable,
)
from shoal.results.postgres.schema import QUERIES
from shoal.results.storable import once_each

MAX_ROWS = 2_000
"""The maximum number of items in one statement. A page may give many times as many."""

_SAVE = QUERIES["save"].replace("{page_arrays}", page_arrays(first=22))
_SAVE_FILES = QUERIES["save_files"].replace("{file_arrays}", file_arrays(first=2))

log = logging.getLogger("shoal")


async def save(crawl: str, batch: Batch, connection: Connection) -> None:
    """Store a whole batch or nothing."""
    try:
        if len(batch.items) <= MAX_ROWS and not batch.files:
            await _write(crawl, batch, connection)
        else:
            await _save_by_parts(crawl, batch, connection)
    except RowRejected:
        # Too rare to check for it beforehand.
        await _save_apart(crawl, storable(batch), connection)


def statements_of(batch: Batch) -> int:
    """How many statements saving the batch takes if no row is rejected."""
    return max(1, -(-len(batch.items) // MAX_ROWS)) + bool(batch.files)


async def _save_by_parts(crawl: str, batch: Batch, connection: Connection) -> None:
    async with connection.transaction():
        for part in _parts(batch.items):
            await _write(crawl, Batch(items=part, keep=batch.keep), connection)
        rest = Batch(batch.pages, [], batch.rejected, batch.keep, batch.files)
        await _write(crawl, rest, connection)


def _parts(items: list[StoredItem]) -> list[list[StoredItem]]:
    return [items[start : start + MAX_ROWS] for start in range(0, len(items), MAX_ROWS)]


async def _save_apart(crawl: str, batch: Batch, connection: Connection) -> None:
    """Save the items that the database accepts, and the others as rejected items."""
    async with connection.transaction():
        rejected: list[RejectedItem] = []
        for part in _parts(batch.items):
            rejected += await _save_items(crawl, part, batch.keep, connection)
        put_aside = [*batch.rejected, *rejected]
        rest = Batch(batch.pages, [], put_aside, batch.keep, batch.files)
        await _write(crawl, rest, connection)
    for item in rejected:
        log.warning("%s of %s was rejected: %s", item.kind, item.url, item.reason)


async def _save_items(
    crawl: str, items: Sequence[StoredItem], keep: Keep, connection: Connection
) -> list[RejectedItem]:
    """Save items, splitting them in halves to isolate those that the database rejects.

    Returns the rejected items.
    """
    try:
        async with connection.transaction():
            await _write(crawl, Batch(items=list(items), keep=keep), connection)
    except RowRejected as error:
        if len(items) == 1:
            return [_rejected(items[0], error)]
    else:
        return []
    middle = len(items) // 2
    first = await _save_items(crawl, items[:middle], keep, connection)
    return first + await _save_items(crawl, items[middle:], keep, connection)


def _rejected(item: StoredItem, error: RowRejected) -> RejectedItem:
    return RejectedItem(
        kind=item.kind,
        data=item.data.decode(errors="replace")[:SHOWN_CHARACTERS],
        reason=f"the database refuses it: {error}",
        url=item.url,
        fingerprint=item.fingerprint,
        scraped_at=item.scraped_at,
    )


async def _write(crawl: str, batch: Batch, connection: Connection) -> None:
    with noticing_rejections():
        keep, readings = batch.keep, once_each(batch.items)
        columns = item_columns(readings)
        stored = await connection.fetchval(
            _SAVE,
            crawl,
            *columns,
            [host_of(reading.url) for reading in readings],
            *_newest_columns(readings, columns[CONTENT]),
            timedelta(seconds=keep.refresh_s),
            keep.has_history,
            keep.all_readings,
            *rejected_columns(batch.rejected),
            *page_columns(batch.pages),
        )
        if stored < len(readings) and keep.has_history and not keep.refresh_s:
            # If this fails, the batch is saved again, as its tasks are not finished yet.
            await connection.execute(QUERIES["save_late"], crawl, *columns, keep.all_readings)
        if batch.files:
            await connection.execute(_SAVE_FILES, crawl, *file_columns(batch.files))


def _newest_columns(
    readings: Sequence[StoredItem], contents: Sequence[int]
) -> tuple[list[bool], list[datetime]]:
    """For each reading, whether it is its item's newest in the batch, and the item's `first_at`.

    A statement writes a row only once, so only the newest reading becomes the item's state.
    `first_at` is the time of the earliest reading with other content than the newest one, or else
    the time of the newest one.
    """
    names = [(reading.kind, reading.key) for reading in readings]
    newest: dict[tuple[str, str], int] = {}
    for place, (name, reading) in enumerate(zip(names, readings, strict=True)):
        if name not in newest or reading.scraped_at >= readings[newest[name]].scraped_at:
            newest[name] = place
    first_at = {name: readings[place].scraped_at for name, place in newest.items()}
    if len(newest) < len(readings):
        for name, reading, content in zip(names, readings, contents, strict=True):
            if content != contents[newest[name]]:
                first_at[name] = min(first_at[name], reading.scraped_at)
    is_newest = [newest[name] == place for place, name in enumerate(names)]
    return is_newest, [moment(first_at[name]) for name in names]
