"""Returns items, page by page or all as a file."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
from aiohttp import web
from msgspec import Meta

from shoal.core.records import StoredItem
from shoal.errors import ConfigError
from shoal.export import Format, export
from shoal.insight.json import item_json
from shoal.insight.moments import parse_since
from shoal.results.port import Wanted
from shoal.web.api.crawls import CRAWL, crawl_of
from shoal.web.api.forms import Page
from shoal.web.context import Context
from shoal.web.cursors import bad_cursor, cursor_after, place_of
from shoal.web.downloads import sent
from shoal.web.problems import Problem
from shoal.web.routes import Route, json_response, query_of

MEDIA = {
    Format.JSONL: "application/x-ndjson",
    Format.CSV: "text/csv",
    Format.PARQUET: "application/vnd.apache.parquet",
}
PAGE_BYTES = 4 * 1024 * 1024
"""Size limit of a page. It ends with the item that exceeds this."""
PLACE_BYTES = 8

Kind = Annotated[str, Meta(min_length=1, max_length=300)]


class ItemsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which items to list."""

    kind: Kind | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[str, Meta(max_length=200)] | None = None


class ExportQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which items to export, and in which format."""

    format: Format = Format.JSONL
    kind: Kind | None = None
    since: Annotated[str, Meta(max_length=40)] | None = None
    """A time span back from now (15m, 12h, 7d), or an ISO date."""
    changed: bool = False
    gone: bool = False


async def list_items(context: Context, request: web.Request) -> web.StreamResponse:
    """Items in the order in which they were first stored."""
    query, crawl = query_of(request, ItemsQuery), crawl_of(request)
    with problem_if_not_queryable():
        page = await items_page(context, crawl, query)
    forms = [item_json(item) for item in page.items]
    return json_response(Page(items=forms, total=page.total, cursor=page.cursor))


async def items_page(context: Context, crawl: str, query: ItemsQuery) -> Page[StoredItem]:
    """A page of items, with fewer than `query.limit` if they are large.

    Only the first page has the total, because counting takes longer than reading a page. Raises
    Problem, UnknownCrawl, and ConfigError if results only pass through the store.
    """
    place = _place_of(query.cursor)
    page = Page[StoredItem](items=[])
    if query.cursor is None:
        page.total = await _count(context, crawl, query.kind)
    size = 0
    async for at, item in context.results.items_from(crawl, place, Wanted(query.kind)):
        if len(page.items) == query.limit or size > PAGE_BYTES:
            page.cursor = cursor_after(place.to_bytes(PLACE_BYTES, "big"))
            break
        page.items.append(item)
        size += len(item.data)
        place = at
    return page


def _place_of(cursor: str | None) -> int:
    packed = place_of(cursor) or bytes(PLACE_BYTES)
    if len(packed) != PLACE_BYTES or packed[0] > 127:
        raise bad_cursor()
    return int.from_bytes(packed, "big")


@contextmanager
def problem_if_not_queryable() -> Iterator[None]:
    """Answer 501 for a store that cannot be queried, because it only passes results on."""
    try:
        yield
    except ConfigError as error:
        raise Problem(501, str(error)) from None


async def _count(context: Context, crawl: str, kind: str | None) -> int:
    counts = await context.results.count(crawl)
    if not counts:
        await context.frontier.stats(crawl)  # Raises UnknownCrawl. A crawl may have no items.
    return sum(counts.values()) if kind is None else counts.get(kind, 0)


async def export_items(context: Context, request: web.Request) -> web.StreamResponse:
    """All items, as a file. It is written completely before it is sent, so that the client gets
    either a whole file or a problem. A client that does not read it in time is cut off, as with any
    answer."""
    query, crawl = query_of(request, ExportQuery), crawl_of(request)
    since = None if query.since is None else parse_since(query.since, time.time())
    with problem_if_not_queryable():
        await _count(context, crawl, query.kind)
    wanted = Wanted(query.kind, since, query.changed, query.gone)
    with context.exports.entered(), tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "items"
        async with context.making_exports:
            await export(context.results, crawl, file, query.format, wanted)
        name = f"{_safe(crawl)}.{query.format}"
        with file.open("rb") as content:
            return await sent(request, content, MEDIA[query.format], name)


def _safe(name: str) -> str:
    """A crawl's name as a file name: safe characters only, at most 80."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)[:80].lstrip(".") or "items"


ROUTES = (
    Route(
        method="GET",
        path=f"{CRAWL}/items",
        answer=list_items,
        summary="Items in the order in which they were first stored",
        query=ItemsQuery,
        gives=Page[dict[str, Any]],
    ),
    Route(
        method="GET",
        path=f"{CRAWL}/export",
        answer=export_items,
        summary="All items as JSON lines, CSV or Parquet",
        query=ExportQuery,
        gives_media=tuple(MEDIA.values()),
        is_endless=True,
    ),
)
