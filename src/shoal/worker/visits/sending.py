"""Sends what a lease permits: the one place where a lease becomes a request."""

from __future__ import annotations

import time
from collections.abc import Callable

from shoal.core.exits import Lent
from shoal.core.task import Task
from shoal.errors import OwnFault, TooLate
from shoal.fetch.port import DIRECT, Fetcher, Request, Response, Route
from shoal.frontier.values import Lease

Routes = Callable[[Lent, str | None], Route | None]
"""Returns the route by an exit that was lent, for a task of a pool. None: the exit is not known
here."""


_OF_ITS_GROUP = Route(DIRECT.name, allows_direct=True)
"""The route for accounts whose group goes by no pool."""


def no_routes(lent: Lent, task_pool: str | None) -> Route | None:
    """Knows no exits."""
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
    """Send the request for a task's page, as and by the route that its lease permits.

    Raises FetchError; its subclass TooLate if the permission has lapsed, which holds until
    `send_by`, by time.monotonic(). Raises OwnFault if the lease is for an exit that is not known
    here.
    """
    if time.monotonic() > send_by:
        raise TooLate("the permission to send has lapsed")
    if lease.lent is None and lease.identity is None:
        return await fetcher.fetch(Request(task, send_by, cookies=cookies))
    route = route_of(lease, routes)
    return await fetcher.fetch(Request(task, send_by, route, cookies, user_agent))


def route_of(lease: Lease, routes: Routes) -> Route:
    """Return the route that a lease permits, for a task with a pool or a session. Raises OwnFault
    if that is by an exit that is not known here."""
    return route_by(lease.lent, lease.task.proxy_pool, routes)


def route_by(lent: Lent | None, task_pool: str | None, routes: Routes) -> Route:
    """Return the route by an exit that was lent; without one, the route of accounts whose group
    goes by no pool. Raises OwnFault if the exit is not known here."""
    if lent is None:
        return _OF_ITS_GROUP
    route = routes(lent, task_pool)
    if route is None or route is DIRECT:
        raise OwnFault(f"exit {lent.exit} is not known here")
    return route
