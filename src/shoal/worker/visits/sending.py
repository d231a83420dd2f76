"""Sending what a lease permits: the one place where a lease becomes a request."""

from __future__ import annotations

from shoal.core.task import Task
from shoal.errors import TooLate
from shoal.fetch.port import Fetcher, Request, Response
from shoal.frontier.values import Lease
from shoal.worker.report import send_by, too_late


async def send(fetcher: Fetcher, task: Task, lease: Lease, decided: float) -> Response:
    """Ask for a task's page with the permission of a lease. Raises FetchError, of which TooLate if
    the permission has lapsed. `decided` is the monotonic moment of the grant."""
    if too_late(lease, decided):
        raise TooLate("the permission to send has lapsed")
    return await fetcher.fetch(Request(task, send_by(lease, decided)))
