"""Saving a batch: in one statement, or row by row where the database refuses one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from shoal.items import SHOWN_CHARACTERS
from shoal.results.port import Batch, Keep, RejectedItem, StoredItem
from shoal.results.postgres.failures import RowRefused, noticing_refusals
from shoal.results.postgres.link import Connection
from shoal.results.postgres.rows import (
    host_of,
    item_columns,
    page_columns,
    rejected_columns,
    storable,
)
from shoal.results.postgres.schema import QUERIES


async def save(crawl: str, batch: Batch, connection: Connection) -> None:
    """Store a batch, all of it or nothing."""
    try:
        await _write(crawl, batch, connection)
    except RowRefused:
        # Rare enough not to look for it beforehand.
        await _save_apart(crawl, storable(batch), connection)


async def _save_apart(crawl: str, batch: Batch, connection: Connection) -> None:
    """Save what the database takes; put the items aside that it does not."""
    async with connection.transaction():
        refused = await _save_items(crawl, batch.items, batch.keep, connection)
        rest = Batch(batch.pages, [], [*batch.rejected, *refused], batch.keep)
        await _write(crawl, rest, connection)


async def _save_items(
    crawl: str, items: Sequence[StoredItem], keep: Keep, connection: Connection
) -> list[RejectedItem]:
    """Save items by halves until those that are refused stand alone. Returns them."""
    try:
        async with connection.transaction():
            await _write(crawl, Batch(items=list(items), keep=keep), connection)
    except RowRefused as error:
        if len(items) == 1:
            return [_refused(items[0], error)]
    else:
        return []
    middle = len(items) // 2
    first = await _save_items(crawl, items[:middle], keep, connection)
    return first + await _save_items(crawl, items[middle:], keep, connection)


def _refused(item: StoredItem, error: RowRefused) -> RejectedItem:
    return RejectedItem(
        kind=item.kind,
        data=item.data.decode()[:SHOWN_CHARACTERS],
        reason=f"the database refuses it: {error}",
        url=item.url,
        fingerprint=item.fingerprint,
        scraped_at=item.scraped_at,
    )


async def _write(crawl: str, batch: Batch, connection: Connection) -> None:
    with noticing_refusals():
        readings = _once_each(batch.items)
        columns = item_columns(readings)
        newest = _newest(readings)
        stored = await connection.fetchval(
            QUERIES["save"],
            crawl,
            *columns,
            [host_of(reading.url) for reading in readings],
            [reading is newest[reading.kind, reading.key] for reading in readings],
            timedelta(seconds=batch.keep.refresh_s),
            batch.keep.history,
            *page_columns(batch.pages),
            *rejected_columns(batch.rejected),
        )
        if stored < len(readings) and _keeps_late_ones(batch.keep):
            # If this is lost the batch is saved again: its tasks are not finished yet.
            always = batch.keep.history == "always"
            await connection.execute(QUERIES["save_late"], crawl, *columns, always)


def _keeps_late_ones(keep: Keep) -> bool:
    return keep.history != "off" and not keep.refresh_s


def _once_each(items: Iterable[StoredItem]) -> list[StoredItem]:
    """Of readings of one item at the same moment the last one: a statement writes a row once."""
    return list({(i.kind, i.key, i.scraped_at): i for i in items}.values())


def _newest(readings: Iterable[StoredItem]) -> dict[tuple[str, str], StoredItem]:
    newest: dict[tuple[str, str], StoredItem] = {}
    for reading in readings:
        known = newest.get((reading.kind, reading.key))
        if known is None or reading.scraped_at >= known.scraped_at:
            newest[reading.kind, reading.key] = reading
    return newest
