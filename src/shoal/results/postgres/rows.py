"""Converts items, page log, rejected items and files to columns for PostgreSQL, one array each,
and rows back to records."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias, get_args, get_type_hints

import asyncpg
import msgspec
from msgspec.structs import astuple

from shoal.core.content import item_content
from shoal.core.files import FileStatus, StoredFile
from shoal.core.records import RejectedItem, StoredItem
from shoal.core.urls import fingerprint_of, number_of
from shoal.results.port import Batch, KnownPage, PageLog
from shoal.results.storable import (
    FILE_FIELDS,
    PAGE_FIELDS,
    known_best,
    rejection_digest,
    rewritten,
)

Row: TypeAlias = "asyncpg.Record | tuple[Any, ...]"
Columns = list[list[Any]]
FieldOrder = dict[str, list[str]]
"""The names of the fields of each kind of item, in order."""

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

ITEM_COLUMNS, REJECTED_COLUMNS = 7, 7
CONTENT = 3
"""The index of the column with the content hash, which tells whether two readings are equal."""

_KNOWN = ("etag", "last_modified", "links", "read", "digest", "simhash", "rejected")
_ITEM_OF_PAGE = slice(len(_KNOWN) + 1, -1)
"""The item's columns in a row of `known_pages`."""

_SQL_TYPES = {
    int: "bigint",
    float: "float8",
    str: "text",
    FileStatus: "text",
    bytes: "bytea",
}

# Matches every escape, so that the second backslash of an escaped backslash never starts one. A
# pair of surrogates is a character. PostgreSQL can store neither a lone surrogate nor NUL.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<odd>u0000|u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


_HOST = re.compile(r"[^/]*//(?:[^/?#]*@)?([^/?#]*)")


def storable(batch: Batch) -> Batch:
    """The batch with all characters written out that PostgreSQL cannot store."""
    clean = rewritten(batch, storable_text)
    for item in clean.items:
        item.data = storable_json(item.data.decode(errors="replace")).encode()
    return clean


def storable_json(text: str) -> str:
    """JSON text with the escapes of NUL and lone surrogates written out."""
    return _ESCAPE.sub(_written_out, text)


def storable_text(text: str) -> str:
    """Text with NUL and lone surrogates written out as \\uXXXX."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\u0000")


def host_of(url: str) -> str:
    """The host of a URL, with its port if it has one. Empty if the text is not a URL."""
    found = _HOST.match(url or "")
    return found[1] if found else ""


def _written_out(escape: re.Match[str]) -> str:
    return "\\" + escape[0] if escape["odd"] else escape[0]


# Records to columns, in the order that queries.sql expects


def item_columns(items: Sequence[StoredItem]) -> Columns:
    """The columns of items to save."""
    rows = [
        (
            item.kind,
            item.key,
            moment(item.scraped_at),
            item_content(item.data),
            number_of(item.fingerprint),
            item.url,
            item.data.decode(),
        )
        for item in items
    ]
    return _columns(rows, ITEM_COLUMNS)


def page_columns(pages: Sequence[PageLog]) -> Columns:
    """The columns of page log records to save, in the order of their fields."""
    return _converted(_columns([astuple(page) for page in pages], len(PAGE_FIELDS)), PAGE_FIELDS)


def page_arrays(first: int) -> str:
    """The SQL parameters for `page_columns`, from `$first` on, each an array of its SQL type."""
    return _arrays(PageLog, first)


def file_columns(files: Sequence[StoredFile]) -> Columns:
    """The columns of file records to save, in the order of their fields."""
    rows = [astuple(file) for file in known_best(files)]
    return _converted(_columns(rows, len(FILE_FIELDS)), FILE_FIELDS)


def file_arrays(first: int) -> str:
    """The SQL parameters for `file_columns`, from `$first` on, each an array of its SQL type."""
    return _arrays(StoredFile, first)


def _converted(columns: Columns, names: Sequence[str]) -> Columns:
    for place, name in enumerate(names):
        if name in _CONVERTED:
            converted = _CONVERTED[name][1]
            columns[place] = [converted(value) for value in columns[place]]
    return columns


def _arrays(record: type[msgspec.Struct], first: int) -> str:
    types = {name: _sql_type(hint) for name, hint in get_type_hints(record).items()}
    types |= {name: sql_type for name, (sql_type, _) in _CONVERTED.items()}
    names = record.__struct_fields__
    return ", ".join(f"${n}::{types[name]}[]" for n, name in enumerate(names, first))


def _sql_type(hint: Any) -> str:
    return _SQL_TYPES[next(iter(get_args(hint)), hint)]


def rejected_columns(items: Sequence[RejectedItem]) -> Columns:
    """The columns of rejected items to save."""
    rows = [
        (
            number_of(item.fingerprint),
            moment(item.scraped_at),
            rejection_digest(item),
            item.kind,
            item.reason,
            item.url,
            item.data,
        )
        for item in items
    ]
    return _columns(rows, REJECTED_COLUMNS)


def _columns(rows: Sequence[tuple[Any, ...]], count: int) -> Columns:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(count)]


# Rows to records


def fields_of(data: bytes) -> str:
    """The names of an item's fields in order, as a JSON list. Empty if the data is not valid."""
    try:
        return msgspec.json.encode(list(_decode_fields(data))).decode()
    except msgspec.DecodeError:
        return "[]"


def item_of(row: Row, order: FieldOrder) -> StoredItem:
    """Make an item, or a reading of one, from its row. The first column is the id."""
    _, kind, key, number, scraped_at, gone_at, url, data = row
    return StoredItem(
        kind=kind,
        key=key,
        data=_in_order(data, order.get(kind, [])),
        url=url,
        fingerprint=fingerprint_of(number),
        scraped_at=scraped_at.timestamp(),
        gone_at=None if gone_at is None else gone_at.timestamp(),
    )


def _in_order(data: str, names: list[str]) -> bytes:
    """An item's JSON with its fields in the given order, followed by all others."""
    values = _decode_fields(data)
    known = {name: values.pop(name) for name in names if name in values}
    return msgspec.json.encode(known | values)


def page_of(row: asyncpg.Record) -> PageLog:
    """Make a page log record from its row. The columns have the names of the fields."""
    values = dict(row)
    values["fingerprint"] = fingerprint_of(row["fingerprint"])
    values["started_at"] = row["started_at"].timestamp()
    return PageLog(**values)


def known_pages_of(rows: Sequence[asyncpg.Record]) -> dict[bytes, KnownPage]:
    """Make a record of each visited page from its rows, one for each item. A page without items
    has one row, which ends in nulls."""
    pages: dict[bytes, KnownPage] = {}
    for row in rows:
        fingerprint = fingerprint_of(row["page"])
        if fingerprint not in pages:
            pages[fingerprint] = KnownPage(**{name: row[name] for name in _KNOWN})
        if row["id"] is not None:
            order = {row["kind"]: msgspec.json.decode(row["fields"] or "[]")}
            pages[fingerprint].items.append(item_of(tuple(row)[_ITEM_OF_PAGE], order))
    return pages


def rejected_of(row: asyncpg.Record) -> RejectedItem:
    """Make a rejected item from its row. The first column is the id."""
    _, number, scraped_at, kind, reason, url, data = row
    return RejectedItem(
        kind=kind,
        data=data,
        reason=reason,
        url=url,
        fingerprint=fingerprint_of(number),
        scraped_at=scraped_at.timestamp(),
    )


def file_of(row: asyncpg.Record) -> StoredFile:
    """Make a file record from its row. The columns have the names of the fields."""
    values = dict(row)
    values["fingerprint"] = fingerprint_of(row["fingerprint"])
    values["at"] = row["at"].timestamp()
    values["status"] = FileStatus(row["status"])
    return StoredFile(**values)


def moment(seconds: float) -> datetime:
    """Seconds since 1970 as a datetime, to the microsecond, as PostgreSQL stores them."""
    return datetime.fromtimestamp(seconds, UTC)


_CONVERTED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "fingerprint": ("bigint", number_of),
    "started_at": ("timestamptz", moment),
    "at": ("timestamptz", moment),
}
"""Fields of records that are stored as another type: the SQL type, and the conversion to it."""
