"""Sending what a lease permits: the one place where a lease becomes a request."""

from __future__ import annotations

import time
from collections.abc import Callable

from shoal.core.exits import Lent
from shoal.core.task import Task
from shoal.errors import OwnFault, TooLate
from shoal.fetch.port import DIRECT, Fetcher, Request, Response, Route
from shoal.frontier.values import Lease

Routes = Callable[[Lent, str | None], Route | None]
"""The route by an exit that was lent, for a task of a pool. None: it is not known here."""


_OF_ITS_GROUP = Route(DIRECT.name, allows_direct=True)
"""For accounts whose group goes by no pool."""


def no_routes(lent: Lent, task_pool: str | None) -> Route | None:
    """For those who know no exits."""
    return None


async def send(
    fetcher: Fetcher,
    lease: Lease,
    task: Task,
    send_by: float,
    routes: Routes,
    cookies: str = "",
    user_agent: str = "",
) -> Response:
    """Ask for a task's page with the permission of a lease, and by no other way than it says.
    Raises FetchError, of which TooLate if the permission has lapsed: it holds until `send_by`, by
    time.monotonic(); and OwnFault if it is for an exit that is not known here."""
    if time.monotonic() > send_by:
        raise TooLate("the permission to send has lapsed")
    if lease.lent is None and lease.identity is None:
        return await fetcher.fetch(Request(task, send_by, cookies=cookies))
    route = route_of(lease, routes)
    return await fetcher.fetch(Request(task, send_by, route, cookies, user_agent))


def route_of(lease: Lease, routes: Routes) -> Route:
    """The way that a lease says, of a task with a pool or a session. Raises OwnFault if it is by an
    exit that is not known here."""
    return route_by(lease.lent, lease.task.proxy_pool, routes)


def route_by(lent: Lent | None, task_pool: str | None, routes: Routes) -> Route:
    """The way by an exit that was lent; of an account whose group has none, without. Raises
    OwnFault."""
    if lent is None:
        return _OF_ITS_GROUP
    route = routes(lent, task_pool)
    if route is None or route is DIRECT:
        raise OwnFault(f"exit {lent.exit} is not known here")
    return route
