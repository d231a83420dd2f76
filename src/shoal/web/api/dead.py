"""Lists, retries and purges dead tasks, by kind and host. The newest come first."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from aiohttp import web
from msgspec import Meta

from shoal.core.failures import FailureKind
from shoal.core.urls import FINGERPRINT_BYTES
from shoal.frontier.events import PURGED, RETRIED, note_event
from shoal.frontier.values import DeadFilter, DeadPlace, Record
from shoal.insight.figures import counted
from shoal.insight.json import dead_task_json
from shoal.web.api.crawls import CRAWL, crawl_of
from shoal.web.api.forms import CountForm, DeadForm, Page
from shoal.web.context import Context
from shoal.web.cursors import cursor_at, place_at
from shoal.web.routes import Route, body_of, json_response, query_of

Limit = Annotated[int, Meta(ge=1, le=1000)]
HostName = Annotated[str, Meta(min_length=1, max_length=300)]
Fingerprint = Annotated[str, Meta(pattern=f"^[0-9a-f]{{{2 * FINGERPRINT_BYTES}}}$")]


class DeadQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which dead tasks to list."""

    kind: FailureKind | None = None
    host: HostName | None = None
    limit: Limit = 100
    cursor: Annotated[str, Meta(max_length=200)] | None = None


class DeadOrder(msgspec.Struct, forbid_unknown_fields=True):
    """Which dead tasks to retry or purge: those that match all given fields; all if none is."""

    kind: FailureKind | None = None
    host: HostName | None = None
    fingerprints: Annotated[list[Fingerprint], Meta(max_length=1000)] | None = None
    dry_run: bool = False
    """Whether to only count them."""

    @property
    def which(self) -> DeadFilter:
        """The same as a filter for the frontier."""
        named = self.fingerprints
        keys = None if named is None else [bytes.fromhex(one) for one in named]
        return DeadFilter(kind=self.kind, host=self.host, fingerprints=keys)


async def list_dead(context: Context, request: web.Request) -> web.StreamResponse:
    """Dead tasks, page by page."""
    query = query_of(request, DeadQuery)
    page = await dead_page(context, crawl_of(request), query)
    forms = [dead_task_json(record) for record in page.items]
    return json_response(Page(items=forms, total=page.total, cursor=page.cursor))


async def dead_page(context: Context, crawl: str, query: DeadQuery) -> Page[Record]:
    """A page of dead tasks, with their total number. Raises Problem, UnknownCrawl."""
    place = place_at(query.cursor)
    which = DeadFilter(kind=query.kind, host=query.host)
    found = await context.frontier.dead(crawl, query.limit + 1, place and DeadPlace(*place), which)
    shown = found[: query.limit]
    more = cursor_at(shown[-1].place) if len(found) > len(shown) else None
    total = await context.frontier.retry_dead(crawl, which, dry_run=True)
    return Page(items=shown, total=total, cursor=more)


async def retry(context: Context, request: web.Request) -> web.StreamResponse:
    """Give dead tasks a fresh start."""
    order, crawl = await body_of(request, DeadOrder), crawl_of(request)
    count = await retry_these(context, crawl, order.which, dry_run=order.dry_run)
    return json_response(CountForm(count=count, dry_run=order.dry_run))


async def purge(context: Context, request: web.Request) -> web.StreamResponse:
    """Drop dead tasks for good."""
    order, crawl = await body_of(request, DeadOrder), crawl_of(request)
    count = await purge_these(context, crawl, order.which, dry_run=order.dry_run)
    return json_response(CountForm(count=count, dry_run=order.dry_run))


async def retry_these(
    context: Context, crawl: str, which: DeadFilter, *, dry_run: bool = False
) -> int:
    """Retry dead tasks and note that as an event of the crawl. Returns how many."""
    count = await context.frontier.retry_dead(crawl, which, dry_run=dry_run)
    if count and not dry_run:
        await note_event(
            context.frontier.notes, crawl, RETRIED, counted(count, "dead task"), by="web"
        )
    return count


async def purge_these(
    context: Context, crawl: str, which: DeadFilter, *, dry_run: bool = False
) -> int:
    """Purge dead tasks and note that as an event of the crawl. Returns how many."""
    count = await context.frontier.purge_dead(crawl, which, dry_run=dry_run)
    if count and not dry_run:
        await note_event(
            context.frontier.notes, crawl, PURGED, counted(count, "dead task"), by="web"
        )
    return count


def _order(path: str, answer: Any, summary: str) -> Route:
    # Endless, because many tasks are moved in batches, which may take longer than other answers.
    return Route(
        method="POST", path=path, answer=answer, summary=summary, body=DeadOrder,
        gives=CountForm, is_endless=True,
    )  # fmt: skip


ROUTES = (
    Route(
        method="GET",
        path=f"{CRAWL}/dead",
        answer=list_dead,
        summary="Tasks that failed for good, the newest first",
        query=DeadQuery,
        gives=Page[DeadForm],
    ),
    _order(f"{CRAWL}/dead/retry", retry, "Give dead tasks a fresh start"),
    _order(f"{CRAWL}/dead/purge", purge, "Drop dead tasks for good"),
)
