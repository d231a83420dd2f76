"""Export (`shoal export`): writes items of a results store as JSON lines, CSV or Parquet.
Imports results and archive, and core below them.

There is one object or row per item: its fields, then `_kind`, `_key`, `_url` and `_scraped_at`. If
items that are gone are exported too, there is also `_gone_at`, which is null for the others. If an
item has files, `_files` describes each of them instead of only referring to it, and `_complete`
says whether all are stored.

All other values are written exactly as they were stored, in CSV too: text that a spreadsheet would
read as a formula (`=…`) is not changed. Open a file with data from untrusted pages with care.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from shoal.core.records import StoredItem
from shoal.errors import ConfigError
from shoal.export import csv, parquet
from shoal.export.files import replacing, standard_output
from shoal.export.item_files import FilesFolder, with_files
from shoal.export.rows import GONE_FIELD, OWN_FIELDS, Columns, write_lines
from shoal.results.fields import PROGRESS_EVERY, Progress, iso
from shoal.results.port import EVERYTHING, Results, Wanted

__all__ = [
    "GONE_FIELD",
    "OWN_FIELDS",
    "FilesFolder",
    "Format",
    "Progress",
    "export",
    "format_of",
    "require",
]


class Format(StrEnum):
    """The formats of an export."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


def format_of(target: Path | None, named: str | None = None) -> Format:
    """The format named, else that of the file's suffix, else (for stdout) JSON lines. Raises
    ConfigError if there is no such format."""
    wanted = named or (target.suffix.removeprefix(".").lower() if target else Format.JSONL)
    try:
        return Format(wanted)
    except ValueError:
        wrong = f"no such format: {named!r}" if named else f"{target}: no format has this suffix"
        raise ConfigError(f"{wrong} (formats: {', '.join(Format)})") from None


def require(fmt: Format) -> None:
    """Raise MissingExtra if the packages for a format are not installed."""
    if fmt is Format.PARQUET:
        parquet.require()


async def export(
    results: Results,
    crawl: str,
    target: Path | None,
    fmt: Format,
    wanted: Wanted = EVERYTHING,
    progress: Progress = lambda stage, count: None,
    folder: FilesFolder | None = None,
) -> int:
    """Write the items of a crawl that are wanted, and return their number.

    A target of None is standard output. A target file appears complete or not at all; until then an
    older one stays. `progress` is called every thousand items with the number read, and then, for a
    format that needs all items before it can begin, with the number written. Files of items that
    are stored are copied to `folder`, if there is one.

    Raises ConfigError if the target cannot be created (MissingExtra if a package is needed for it),
    and StorageFailed if it cannot be written in full. BrokenPipeError passes through: the reader of
    standard output has seen enough.
    """
    require(fmt)
    items = with_files(results.items(crawl, wanted), results, crawl, folder)
    items = _reported(items, progress)
    own = (*OWN_FIELDS, GONE_FIELD) if wanted.gone else OWN_FIELDS
    with replacing(target) if target else standard_output() as out:
        if fmt is Format.JSONL:
            return await write_lines(items, out, own)
        beside = target.parent if target else None
        return await _write_table(items, out, fmt, Columns(own), beside, progress)


async def _write_table(
    items: AsyncIterator[StoredItem],
    out: BinaryIO,
    fmt: Format,
    columns: Columns,
    spool_folder: Path | None,
    progress: Progress,
) -> int:
    """Write a format that must know all columns first.

    The store is read only once, into an unnamed temporary file: while the crawl goes on, a second
    reading would find other items, with other fields.
    """
    moment = parquet.microseconds if fmt is Format.PARQUET else iso
    with tempfile.TemporaryFile(dir=spool_folder) as spool:
        count = await write_lines(items, spool, columns.own, columns, moment)
        spool.seek(0)
        writer = csv if fmt is Format.CSV else parquet
        await writer.write(spool, out, columns, progress)
    return count


async def _reported(
    items: AsyncIterator[StoredItem], progress: Progress
) -> AsyncIterator[StoredItem]:
    count = 0
    async for item in items:
        yield item
        count += 1
        if count % PROGRESS_EVERY == 0:
            progress("read", count)
