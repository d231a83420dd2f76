"""Fetchers and requests for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from shoal.config import Settings
from shoal.core.task import Task
from shoal.fetch import open_fetcher
from shoal.fetch.port import Fetcher, Request

LIMIT = 1024**2


@asynccontextmanager
async def fetching(**changes: Any) -> AsyncIterator[Fetcher]:
    """A fetcher that may use local servers and accepts bodies of a megabyte."""
    defaults: dict[str, Any] = {"allow_private": True, "max_body_bytes": LIMIT}
    fetcher = open_fetcher(Settings(**(defaults | changes)))
    try:
        yield fetcher
    finally:
        await fetcher.close()


def request(url: str, **task: Any) -> Request:
    """A request for a URL."""
    return Request(Task(url=url, **task))
