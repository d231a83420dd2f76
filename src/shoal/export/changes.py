"""Writes the differences of two crawls as JSON lines, one per item, or as CSV, a row per field."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Callable, Collection
from typing import BinaryIO

import msgspec

from shoal.errors import ConfigError
from shoal.export import Format
from shoal.export.csv import Utf8, cell
from shoal.results.changes import Change, Changed, Comparison
from shoal.results.fields import PROGRESS_EVERY, Progress, iso

FORMATS = (Format.JSONL, Format.CSV)
CSV_COLUMNS = ("change", "kind", "key", "field", "before", "after", "url", "scraped_at")

Writer = Callable[[Changed], object]


def require_format(fmt: Format) -> Format:
    """Return the format if changes can be written in it, else raise ConfigError."""
    if fmt not in FORMATS:
        raise ConfigError(f"changes are not written as {fmt} (formats: {', '.join(FORMATS)})")
    return fmt


async def wanted_changes(
    comparison: Comparison, wanted: Collection[Change], progress: Progress
) -> AsyncIterator[Changed]:
    """Yield the changes of these kinds. All items are read and counted, to the end."""
    async for changed in comparison.changes():
        if comparison.compared % PROGRESS_EVERY == 0:
            progress("compared", comparison.compared)
        if changed is not None and changed.change in wanted:
            yield changed


async def write_changes(changes: AsyncIterator[Changed], out: BinaryIO, fmt: Format) -> int:
    """Write changes and return their number."""
    write = _lines(out) if fmt is Format.JSONL else _rows(out)
    count = 0
    async for changed in changes:
        write(changed)
        count += 1
    return count


def _lines(out: BinaryIO) -> Writer:
    return lambda changed: out.write(msgspec.json.encode(_line(changed)) + b"\n")


def _line(changed: Changed) -> dict[str, object]:
    item = changed.item
    return {
        "change": changed.change,
        "kind": item.kind,
        "key": item.key,
        "url": item.url,
        "scraped_at": iso(item.scraped_at),
        "before": None if changed.change is Change.NEW else changed.before,
        "after": None if changed.change is Change.GONE else changed.after,
    }


def _rows(out: BinaryIO) -> Writer:
    table = csv.writer(Utf8(out))
    table.writerow(CSV_COLUMNS)

    def write(changed: Changed) -> None:
        item = changed.item
        for name in changed.fields() or [""]:
            values = cell(changed.before.get(name)), cell(changed.after.get(name))
            row = changed.change, item.kind, item.key, name, *values, item.url
            table.writerow([*row, iso(item.scraped_at)])

    return write
