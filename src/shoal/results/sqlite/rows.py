"""Converts items, page log, rejected items and files to rows of SQLite and back, in the column
order of queries.sql."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import astuple

from shoal.core.content import item_content
from shoal.core.files import FileStatus, StoredFile
from shoal.core.records import RejectedItem, StoredItem
from shoal.core.urls import fingerprint_of, number_of
from shoal.results.port import KnownPage, PageLog
from shoal.results.storable import FILE_FIELDS, PAGE_FIELDS, known_best, rejection_digest

Row = tuple[Any, ...]


def item_rows(crawl: int, items: Iterable[StoredItem]) -> list[Row]:
    """The rows of items to save."""
    return [
        (
            crawl,
            i.kind,
            i.key,
            number_of(i.fingerprint),
            i.scraped_at,
            item_content(i.data),
            i.url,
            i.data,
        )
        for i in items
    ]


def item_of(row: Row) -> StoredItem:
    """Make an item from its row. The first column is the id, with which a stream continues."""
    _, kind, key, number, scraped_at, gone_at, url, data = row
    return StoredItem(
        kind=kind,
        key=key,
        data=data,
        url=url,
        fingerprint=fingerprint_of(number),
        scraped_at=scraped_at,
        gone_at=gone_at,
    )


def known_page_of(rows: Sequence[Row]) -> KnownPage:
    """Make the record of a visited page from its rows, one for each item. A page without items has
    one row, which ends in nulls."""
    etag, last_modified, links, read, rejected, digest, simhash, first, *_ = rows[0]
    return KnownPage(
        etag=etag,
        last_modified=last_modified,
        links=links,
        read=read,
        rejected=rejected,
        digest=digest,
        simhash=simhash,
        items=[] if first is None else [item_of(row[7:]) for row in rows],
    )


def page_rows(crawl: int, pages: Iterable[PageLog]) -> list[Row]:
    """The rows of page log records to save."""
    return [(crawl, number_of(page.fingerprint), *astuple(page)[1:]) for page in pages]


def page_of(row: Row) -> PageLog:
    """Make a page log record from its row."""
    number, *values = row
    return PageLog(**dict(zip(PAGE_FIELDS, (fingerprint_of(number), *values), strict=True)))


def rejected_rows(crawl: int, items: Iterable[RejectedItem]) -> list[Row]:
    """The rows of rejected items to save."""
    return [
        (
            crawl,
            number_of(i.fingerprint),
            i.scraped_at,
            rejection_digest(i),
            i.kind,
            i.reason,
            i.url,
            i.data,
        )
        for i in items
    ]


def rejected_of(row: Row) -> RejectedItem:
    """Make a rejected item from its row. The first column is the id."""
    _, number, scraped_at, kind, reason, url, data = row
    return RejectedItem(
        kind=kind,
        data=data,
        reason=reason,
        url=url,
        fingerprint=fingerprint_of(number),
        scraped_at=scraped_at,
    )


def file_rows(crawl: int, files: Iterable[StoredFile]) -> list[Row]:
    """The rows of file records to save."""
    return [(crawl, number_of(file.fingerprint), *astuple(file)[1:]) for file in known_best(files)]


def file_of(row: Row) -> StoredFile:
    """Make a file record from its row."""
    number, *values = row
    fields = dict(zip(FILE_FIELDS, (fingerprint_of(number), *values), strict=True))
    fields["status"] = FileStatus(fields["status"])
    return StoredFile(**fields)
