"""Records as PostgreSQL takes them, one array per column, and rows as records again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import asyncpg
import msgspec

from shoal.core.content import item_content
from shoal.core.records import RejectedItem, StoredItem
from shoal.core.urls import fingerprint_of, number_of
from shoal.results.port import Batch, KnownPage, PageLog
from shoal.results.storable import rejection_digest, rewritten

Row: TypeAlias = "asyncpg.Record | tuple[Any, ...]"
Columns = list[list[Any]]
FieldOrder = dict[str, list[str]]
"""The names of fields in their order, by the kind of item."""

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

ITEM_COLUMNS, PAGE_COLUMNS, REJECTED_COLUMNS = 7, 18, 7
CONTENT = 3
"""The column of items that says whether two of them are the same."""

_KNOWN = ("etag", "last_modified", "links", "read", "digest", "simhash", "rejected")
_ITEM_OF_PAGE = slice(len(_KNOWN) + 1, -1)
"""The columns of an item, in a row of `known_pages`."""

# One escape after the other, so that the backslash of an escaped backslash begins none. A pair of
# surrogates is a character; one alone is none, nor has PostgreSQL any for NUL.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<odd>u0000|u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


_HOST = re.compile(r"[^/]*//(?:[^/?#]*@)?([^/?#]*)")


def storable(batch: Batch) -> Batch:
    """The batch with all text written out that PostgreSQL has no characters for."""
    clean = rewritten(batch, storable_text)
    for item in clean.items:
        item.data = storable_json(item.data.decode(errors="replace")).encode()
    return clean


def storable_json(text: str) -> str:
    """JSON with the escapes of NUL and of lone surrogates written out."""
    return _ESCAPE.sub(_written_out, text)


def storable_text(text: str) -> str:
    """Text with NUL and lone surrogates written out as \\uXXXX."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\u0000")


def host_of(url: str) -> str:
    """The host of a URL, with its port if there is one. Empty for what is no URL."""
    found = _HOST.match(url or "")
    return found[1] if found else ""


def _written_out(escape: re.Match[str]) -> str:
    return "\\" + escape[0] if escape["odd"] else escape[0]


# Records to columns, in the order of queries.sql.


def item_columns(items: Sequence[StoredItem]) -> Columns:
    """Readings of items."""
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
    """Entries of the page log."""
    rows = [
        (
            number_of(p.fingerprint),
            moment(p.started_at),
            p.attempt,
            p.worker,
            p.duration_s,
            p.verdict,
            p.status,
            p.body_bytes,
            p.items,
            p.links,
            p.url,
            p.parent,
            p.error,
            p.digest,
            p.simhash,
            p.archived,
            p.etag,
            p.last_modified,
        )
        for p in pages
    ]
    return _columns(rows, PAGE_COLUMNS)


def rejected_columns(items: Sequence[RejectedItem]) -> Columns:
    """Items that were put aside."""
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
    """The names of an item's fields in their order, as a JSON list. None where it is no item."""
    try:
        return msgspec.json.encode(list(_decode_fields(data))).decode()
    except msgspec.DecodeError:
        return "[]"


def item_of(row: Row, order: FieldOrder) -> StoredItem:
    """An item, or a reading of one. The first column is where the stream goes on."""
    _, kind, key, own_number, scraped_at, gone_at, url, data = row
    return StoredItem(
        kind=kind,
        key=key,
        data=_in_order(data, order.get(kind, [])),
        url=url,
        fingerprint=fingerprint_of(own_number),
        scraped_at=scraped_at.timestamp(),
        gone_at=None if gone_at is None else gone_at.timestamp(),
    )


def _in_order(data: str, names: list[str]) -> bytes:
    """An item's JSON with its fields in this order, and others behind them."""
    values = _decode_fields(data)
    known = {name: values.pop(name) for name in names if name in values}
    return msgspec.json.encode(known | values)


def page_of(row: asyncpg.Record) -> PageLog:
    """An entry of the page log: the columns have the names of the fields."""
    values = dict(row)
    values["fingerprint"] = fingerprint_of(row["fingerprint"])
    values["started_at"] = row["started_at"].timestamp()
    return PageLog(**values)


def known_pages_of(rows: Sequence[asyncpg.Record]) -> dict[bytes, KnownPage]:
    """Pages with their items. One without any has a row that ends in nulls."""
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
    """An item that was put aside. The first column is where the stream goes on."""
    _, own_number, scraped_at, kind, reason, url, data = row
    return RejectedItem(
        kind=kind,
        data=data,
        reason=reason,
        url=url,
        fingerprint=fingerprint_of(own_number),
        scraped_at=scraped_at.timestamp(),
    )


def moment(seconds: float) -> datetime:
    """Seconds since 1970 as PostgreSQL knows them: to the microsecond."""
    return datetime.fromtimestamp(seconds, UTC)
