"""Writes an export as CSV: a row per item, and a column for each field that any item has."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Iterable
from typing import BinaryIO

import msgspec

from shoal.export.rows import Columns
from shoal.results.fields import PROGRESS_EVERY, Progress, fields_of, text_of


async def write(
    lines: Iterable[bytes], out: BinaryIO, columns: Columns, progress: Progress
) -> None:
    """Write items, given as lines of JSON, as CSV."""
    names = columns.names()
    writer = csv.writer(Utf8(out))
    writer.writerow(names)
    for count, line in enumerate(lines, 1):
        fields = fields_of(line)
        writer.writerow([cell(fields.get(name)) for name in names])
        if count % PROGRESS_EVERY == 0:
            progress("written", count)
            await asyncio.sleep(0)  # let other tasks run, and Ctrl-C take effect


class Utf8:
    """Writes text to a binary file. Unlike io.TextIOWrapper, it never closes the file."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        return self._out.write(text.encode())


def cell(value: msgspec.Raw | None) -> str:
    """A value as the text of a cell: text as it is, nothing for null, everything else as JSON."""
    json = b"null" if value is None else bytes(value)
    return "" if json == b"null" else text_of(json)
