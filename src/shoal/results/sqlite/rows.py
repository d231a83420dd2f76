"""Records to rows of SQLite and back, in the order of the columns in queries.sql."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shoal.core.content import item_content
from shoal.core.records import RejectedItem, StoredItem
from shoal.core.urls import fingerprint_of, number_of
from shoal.results.port import KnownPage, PageLog
from shoal.results.storable import rejection_digest

Row = tuple[Any, ...]


def item_rows(crawl: int, items: Iterable[StoredItem]) -> list[Row]:
    """Items to be saved."""
    return [
        (
            *(crawl, i.kind, i.key, number_of(i.fingerprint), i.scraped_at),
            *(item_content(i.data), i.url, i.data),
        )
        for i in items
    ]


def item_of(row: Row) -> StoredItem:
    """A stored item. The first column is where the stream goes on."""
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
    """A page with its items. Without any there is one row, which ends in nulls."""
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
    """Entries of the page log to be saved."""
    return [
        (
            *(crawl, number_of(p.fingerprint), p.started_at, p.attempt, p.worker),
            *(p.duration_s, p.verdict, p.status, p.body_bytes, p.items, p.links),
            *(p.url, p.parent, p.error),
            *(p.digest, p.simhash, p.archived, p.etag, p.last_modified),
        )
        for p in pages
    ]


def page_of(row: Row) -> PageLog:
    """An entry of the page log."""
    (number, started_at, attempt, worker, duration_s, verdict, status, *rest) = row
    (body_bytes, items, links, url, parent, error, digest, simhash, *content) = rest
    archived, etag, last_modified = content
    return PageLog(
        fingerprint=fingerprint_of(number),
        url=url,
        worker=worker,
        attempt=attempt,
        started_at=started_at,
        duration_s=duration_s,
        verdict=verdict,
        status=status,
        body_bytes=body_bytes,
        items=items,
        links=links,
        error=error,
        parent=parent,
        digest=digest,
        simhash=simhash,
        archived=archived,
        etag=etag,
        last_modified=last_modified,
    )


def rejected_rows(crawl: int, items: Iterable[RejectedItem]) -> list[Row]:
    """Rejected items to be saved."""
    return [
        (
            *(crawl, number_of(i.fingerprint), i.scraped_at, rejection_digest(i)),
            *(i.kind, i.reason, i.url, i.data),
        )
        for i in items
    ]


def rejected_of(row: Row) -> RejectedItem:
    """A rejected item. The first column is where the stream goes on."""
    _, number, scraped_at, kind, reason, url, data = row
    return RejectedItem(
        kind=kind,
        data=data,
        reason=reason,
        url=url,
        fingerprint=fingerprint_of(number),
        scraped_at=scraped_at,
    )
