"""Writes items as lines of JSON, and notes the columns and types that a table of them needs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from decimal import Decimal
from enum import Enum, auto
from math import isfinite
from typing import Any, BinaryIO

import msgspec

from shoal.core.records import StoredItem
from shoal.results.fields import Fields, fields_of, iso

OWN_FIELDS = ("_kind", "_key", "_url", "_scraped_at")
GONE_FIELD = "_gone_at"
"""The field, added by the export, for when an item was found gone, if such items are exported."""


MOST_DIGITS = 310
"""Most characters of a whole number that fits a double, with its sign. Longer ones are never
converted: Python refuses to read numbers of thousands of digits."""

_EXACT_IN_DOUBLE = 2**53
_INT64 = range(-(2**63), 2**63)


class ValueKind(Enum):
    """The kind of a JSON value, for formats whose columns have one type."""

    INT = auto()
    """A whole number that fits both a 64-bit integer and a double."""
    LONG = auto()
    """A whole number that fits only a 64-bit integer."""
    BIG = auto()
    """A whole number that fits only a double. Stores may write large doubles out as digits."""
    DOUBLE = auto()
    HUGE = auto()
    """A number that fits neither of them."""
    BOOL = auto()
    TEXT = auto()
    NESTED = auto()


class Columns(dict[str, set[ValueKind]]):
    """The fields of items, in the order they were first seen, with the kinds of their values."""

    def __init__(self, own: Sequence[str] = OWN_FIELDS) -> None:
        super().__init__()
        self.own = own

    def note(self, fields: Fields) -> None:
        """Record the fields of one more item and the kinds of their values."""
        for name, value in fields.items():
            kinds = self.setdefault(name, set())
            if (kind := kind_of(bytes(value))) is not None:
                kinds.add(kind)

    def names(self) -> list[str]:
        """The names of all columns of a table; those that the export adds come last."""
        return [*self, *self.own]


async def write_lines(
    items: AsyncIterator[StoredItem],
    out: BinaryIO,
    own: Sequence[str] = OWN_FIELDS,
    columns: Columns | None = None,
    moment: Callable[[float], str | int] = iso,
) -> int:
    """Write a line per item and return their number. Records names and kinds of fields in
    `columns`."""
    count = 0
    async for item in items:
        fields = own_fields(item, own)
        if columns is not None:
            columns.note(fields)
        out.write(msgspec.json.encode(line_of(item, fields, own, moment)) + b"\n")
        count += 1
    return count


def own_fields(item: StoredItem, ours: Sequence[str] = OWN_FIELDS) -> Fields:
    """The item's own fields, without any whose name is one of `ours`."""
    fields = fields_of(item.data)
    for name in ours:
        fields.pop(name, None)
    return fields


def line_of(
    item: StoredItem,
    fields: Fields,
    ours: Sequence[str] = OWN_FIELDS,
    moment: Callable[[float], str | int] = iso,
) -> dict[str, Any]:
    """An item as one object: its own fields, then those that the export adds."""
    gone_at = None if item.gone_at is None else moment(item.gone_at)
    values = (item.kind, item.key, item.url, moment(item.scraped_at), gone_at)
    return {**fields, **dict(zip(ours, values, strict=False))}


def kind_of(value: bytes) -> ValueKind | None:
    """The kind of a JSON value; None for null."""
    first = value[:1]
    if first == b'"':
        return ValueKind.TEXT
    if first in b"[{":
        return ValueKind.NESTED
    if first in b"tf":
        return ValueKind.BOOL
    return None if first == b"n" else _kind_of_number(value)


def _kind_of_number(value: bytes) -> ValueKind:
    if not value.removeprefix(b"-").isdigit():
        return ValueKind.DOUBLE if isfinite(float(value)) else ValueKind.HUGE
    if len(value) > MOST_DIGITS:
        return ValueKind.HUGE
    number = int(value)
    if number in _INT64:
        return ValueKind.INT if _fits_double(number) else ValueKind.LONG
    return ValueKind.BIG if _fits_double(number) else ValueKind.HUGE


def _fits_double(number: int) -> bool:
    """Whether a double holds this number exactly, or is written as it: the double 1e23 is written
    so, but holds another number."""
    if abs(number) <= _EXACT_IN_DOUBLE:
        return True
    try:
        double = float(number)
    except OverflowError:
        return False
    return number in (int(double), Decimal(repr(double)))
