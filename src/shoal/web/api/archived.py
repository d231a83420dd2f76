"""Returns raw pages from the archive: always as text in a file, because a site wrote them."""

from __future__ import annotations

import asyncio
from io import BytesIO
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from shoal.archive import archive_at
from shoal.config import Settings
from shoal.core.task import Task
from shoal.core.urls import FINGERPRINT_BYTES
from shoal.errors import ConfigError, StorageFailed
from shoal.frontier.admission import Admission
from shoal.insight.archived import find_archived
from shoal.insight.figures import size
from shoal.results.port import PageLog
from shoal.web.api.crawls import CRAWL, crawl_of
from shoal.web.api.export import problem_if_not_queryable
from shoal.web.context import Context
from shoal.web.downloads import sent
from shoal.web.guard import ANSWER_WITHIN_S
from shoal.web.problems import Problem
from shoal.web.routes import Route, query_of

MEDIA = "text/plain"


class ArchivedQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which page: the newest of `url` or `fingerprint`, or that at `place`."""

    url: Annotated[str, Meta(min_length=1, max_length=8000)] | None = None
    fingerprint: Annotated[str, Meta(pattern=f"^[0-9a-f]{{{2 * FINGERPRINT_BYTES}}}$")] | None = (
        None
    )
    """As `explain` returns it, also for tasks with a body or a session."""
    place: Annotated[str, Meta(min_length=1, max_length=4000)] | None = None
    """`archived` of one of the tries that `explain` returns."""


async def download_page(context: Context, request: web.Request) -> web.StreamResponse:
    """A page as the site sent it. Raises Problem."""
    query, crawl = query_of(request, ArchivedQuery), crawl_of(request)
    settings = context.settings
    with context.pages.entered():
        async with asyncio.timeout(ANSWER_WITHIN_S):
            page = await _found(context, crawl, query)
            if page.body_bytes > (most := settings.max_body_bytes):
                raise Problem(
                    501,
                    f"the page has {size(page.body_bytes)}, and this server sends no more than"
                    f" {size(most)}: see max_body_bytes",
                )
            body = await _body(settings, page.archived)
        name = f"page-{page.fingerprint.hex()}.txt"
        return await sent(request, BytesIO(body), f"{MEDIA}; charset=utf-8", name)


async def _found(context: Context, crawl: str, query: ArchivedQuery) -> PageLog:
    """The try in whose answer a client is interested. Only places in the page log are read."""
    if context.settings.archive is None:
        raise Problem(404, "this server has no archive: it was started without --archive")
    fingerprint = await _fingerprint(context, crawl, query)
    with problem_if_not_queryable():
        page = await find_archived(context.results, crawl, fingerprint, query.place)
    if page is None:
        raise Problem(404, f"crawl '{crawl}' has archived no such page")
    return page


async def _fingerprint(context: Context, crawl: str, query: ArchivedQuery) -> bytes:
    if (query.url is None) == (query.fingerprint is None):
        raise Problem(400, "query: it takes either a url or a fingerprint")
    if query.url is None:
        return bytes.fromhex(query.fingerprint or "")
    admission = Admission((await context.frontier.stats(crawl)).rules)
    return admission.admitted_as(Task(url=query.url)).fingerprint


async def _body(settings: Settings, place: str) -> bytes:
    """The body of a page. The archive is opened for it only."""
    try:
        async with archive_at(settings.archive or "", settings.archive_format) as archive:
            return (await archive.read(place)).body
    except StorageFailed as error:
        raise Problem(404, f"the archive does not have the page any more: {error}") from None
    except ConfigError as error:
        raise Problem(503, f"the archive cannot be used: {error}") from None


ROUTES = (
    Route(
        method="GET",
        path=f"{CRAWL}/archived",
        answer=download_page,
        summary="A raw page from the archive, as text",
        query=ArchivedQuery,
        gives_media=(MEDIA,),
        is_endless=True,
    ),
)
