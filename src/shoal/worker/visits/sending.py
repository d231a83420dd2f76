"""Sending what a lease permits: the one place where a lease becomes a request."""

from __future__ import annotations

import time

from shoal.core.task import Task
from shoal.errors import TooLate
from shoal.fetch.port import Fetcher, Request, Response


async def send(fetcher: Fetcher, task: Task, send_by: float) -> Response:
    """Ask for a task's page with the permission of a lease. Raises FetchError, of which TooLate if
    the permission has lapsed: it holds until `send_by`, by time.monotonic()."""
    if time.monotonic() > send_by:
        raise TooLate("the permission to send has lapsed")
    return await fetcher.fetch(Request(task, send_by))
