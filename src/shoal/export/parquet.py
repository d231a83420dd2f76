"""Writes an export as Parquet: columns of one type each, in row groups of bounded size.

Whole numbers make a column int64, other numbers double, truth values bool, and texts string. If a
number would be rounded, the column holds the digits of all its numbers as text. Lists, objects, and
values of several types make it a column of JSON text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import BinaryIO, NamedTuple

import msgspec

from shoal.errors import MissingExtra
from shoal.export.rows import GONE_FIELD, OWN_FIELDS, Columns, ValueKind
from shoal.results.fields import Progress, fields_of, text_of

GROUP_ROWS = 50_000
GROUP_CELLS = 500_000
GROUP_BYTES = 16 * 1024 * 1024
"""Limits of a row group, which is in memory as a whole: fewer rows if they are wide or large."""

_TIMES = (OWN_FIELDS[-1], GONE_FIELD)


class Type(NamedTuple):
    """The type of a column: Arrow's name for it, and how to read a value from JSON."""

    arrow: str
    read: Callable[[bytes], object]


_INTEGER = Type("int64", int)
_DOUBLE = Type("float64", float)
_BOOL = Type("bool_", lambda value: value == b"true")
_TEXT = Type("string", text_of)
_JSON = Type("string", bytes.decode)


def require() -> None:
    """Raise MissingExtra if the packages for Parquet are not installed."""
    if find_spec("pyarrow") is None:
        raise MissingExtra("Parquet", "parquet")


def type_of(kinds: set[ValueKind]) -> Type:
    """The type of a column with values of these kinds."""
    if kinds <= {ValueKind.TEXT}:
        return _TEXT
    if kinds == {ValueKind.BOOL}:
        return _BOOL
    if kinds <= {ValueKind.INT, ValueKind.LONG}:
        return _INTEGER
    if ValueKind.DOUBLE in kinds and kinds <= {ValueKind.INT, ValueKind.BIG, ValueKind.DOUBLE}:
        return _DOUBLE
    return _JSON  # Numbers that would be rounded come out as their digits.


def microseconds(seconds: float) -> int:
    """A time in microseconds, the unit of the timestamps written here."""
    return round(seconds * 1_000_000)


async def write(
    lines: Iterable[bytes], out: BinaryIO, columns: Columns, progress: Progress
) -> None:
    """Write items, given as lines of JSON with times in microseconds, as Parquet."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    types = {name: type_of(kinds) for name, kinds in columns.items()}
    times = [name for name in columns.own if name in _TIMES]
    types |= dict.fromkeys(columns.own, _TEXT) | dict.fromkeys(times, _INTEGER)
    arrow = {name: getattr(pa, kind.arrow)() for name, kind in types.items()}
    schema = pa.schema(arrow | dict.fromkeys(times, pa.timestamp("us", tz="UTC")))
    count = 0
    with ParquetWriter(out, schema) as writer:
        for group in _groups(lines, types):
            arrays = [
                pa.array(cells, field.type) for cells, field in zip(group, schema, strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            count += len(arrays[0])
            progress("written", count)
            await asyncio.sleep(0)  # let other tasks run, and Ctrl-C take effect


def _groups(lines: Iterable[bytes], types: dict[str, Type]) -> Iterator[list[list[object]]]:
    """Yield row groups: the cells of each column, for as many rows as may be in memory at once."""
    most_rows = max(min(GROUP_ROWS, GROUP_CELLS // len(types)), 1)
    group: list[list[object]] = [[] for _ in types]
    size = 0
    for line in lines:
        fields = fields_of(line)
        for cells, (name, kind) in zip(group, types.items(), strict=True):
            cells.append(_cell(fields.get(name), kind))
        size += len(line)
        if len(group[0]) >= most_rows or size >= GROUP_BYTES:
            yield group
            group, size = [[] for _ in types], 0
    if group[0]:
        yield group


def _cell(value: msgspec.Raw | None, kind: Type) -> object:
    json = b"null" if value is None else bytes(value)
    return None if json == b"null" else kind.read(json)
