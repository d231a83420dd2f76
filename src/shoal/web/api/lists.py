"""Lists a crawl's hosts, its workers and the tasks that they have leased, page by page.

These lists change while clients read them, so a cursor is a position: an entry that moves meanwhile
may be listed twice, or be missed.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from aiohttp import web
from msgspec import Meta

from shoal.frontier.values import HostOrder, Leased, Pulse
from shoal.insight.json import hosts_json, leased_json
from shoal.web.api.crawls import CRAWL, Limit, crawl_of
from shoal.web.api.forms import HostForm, Page
from shoal.web.context import Context
from shoal.web.cursors import bad_cursor, cursor_after, place_of
from shoal.web.routes import Route, json_response, query_of

MOST = 10_000
"""Where a list ends. For the last page, the frontier reads all entries before it, too."""
POSITION_BYTES = 8

Name = Annotated[str, Meta(min_length=1, max_length=300)]


class ListQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which page of a list."""

    limit: Limit = 100
    cursor: Annotated[str, Meta(max_length=200)] | None = None

    @property
    def first(self) -> int:
        """The position at which the page begins. Raises Problem if the cursor is not valid."""
        place = place_of(self.cursor)
        if place is None:
            return 0
        position = int.from_bytes(place, "big")
        if len(place) != POSITION_BYTES or position >= MOST:
            raise bad_cursor()
        return position


class HostsQuery(ListQuery, forbid_unknown_fields=True, kw_only=True):
    """Which hosts to list, and which of them first."""

    order: HostOrder = HostOrder.BUSIEST
    q: Annotated[str, Meta(max_length=300)] = ""
    """Only hosts whose names contain this."""


class WorkersQuery(ListQuery, forbid_unknown_fields=True, kw_only=True):
    """Which workers to list."""

    limit: Limit = 1000
    host: Name | None = None
    """The machine that they run on."""


class ActiveQuery(ListQuery, forbid_unknown_fields=True, kw_only=True):
    """Which leased tasks to list."""

    host: Name | None = None
    worker: Name | None = None


async def list_hosts(context: Context, request: web.Request) -> web.StreamResponse:
    """The hosts in the order that was asked for."""
    query, crawl = query_of(request, HostsQuery), crawl_of(request)
    if query.q:
        hosts = await context.frontier.hosts(crawl, MOST, query.order)
        return _page(query, hosts_json([host for host in hosts if query.q in host.host]))
    end = min(query.first + query.limit, MOST)
    hosts = await context.frontier.hosts(crawl, end, query.order)
    # Hosts of equal rank may come in another order in a longer list, so positions do not tell which
    # of them were on earlier pages.
    before = await context.frontier.hosts(crawl, query.first, query.order) if query.first else []
    known = {host.host for host in before}
    rest = [host for host in hosts if host.host not in known]
    cursor = None if len(hosts) < end or end == MOST else _cursor(end)
    return json_response(Page(items=hosts_json(rest), total=None, cursor=cursor))


async def list_workers(context: Context, request: web.Request) -> web.StreamResponse:
    """The workers that have recently sent a heartbeat, by name."""
    query = query_of(request, WorkersQuery)
    workers = await context.frontier.workers(crawl_of(request))
    found = [one for one in workers if query.host in (None, one.host)]
    return _page(query, found, total=len(found))


async def list_active(context: Context, request: web.Request) -> web.StreamResponse:
    """The tasks that workers have leased, in the order in which their leases expire."""
    query, crawl = query_of(request, ActiveQuery), crawl_of(request)
    is_filtered = query.host is not None or query.worker is not None
    needed = MOST if is_filtered else min(query.first + query.limit + 1, MOST)
    leased = await context.frontier.leased(crawl, needed)
    found = [
        leased_json(one)
        for one in leased
        if query.host in (None, one.host) and query.worker in (None, one.worker)
    ]
    return _page(query, found)


def _page(query: ListQuery, found: list[Any], total: int | None = None) -> web.Response:
    end = query.first + query.limit
    is_last = end >= min(len(found), MOST)
    cursor = None if is_last else _cursor(end)
    return json_response(Page(items=found[query.first : end], total=total, cursor=cursor))


def _cursor(position: int) -> str:
    return cursor_after(position.to_bytes(POSITION_BYTES, "big"))


def _get(path: str, answer: Any, summary: str, gives: Any, query: Any) -> Route:
    return Route(method="GET", path=path, answer=answer, summary=summary, gives=gives, query=query)


ROUTES = (
    _get(f"{CRAWL}/hosts", list_hosts, "Its hosts, in an order", Page[HostForm], HostsQuery),
    _get(
        f"{CRAWL}/workers",
        list_workers,
        "Workers that have sent a heartbeat lately",
        Page[Pulse],
        WorkersQuery,
    ),
    _get(
        f"{CRAWL}/active",
        list_active,
        "Tasks that workers have leased",
        Page[Leased],
        ActiveQuery,
    ),
)
