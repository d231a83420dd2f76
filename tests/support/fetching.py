"""Fetchers for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from shoal.config import Settings
from shoal.fetch.http.client import HttpFetcher

LIMIT = 1024**2


@asynccontextmanager
async def fetching(**changes: Any) -> AsyncIterator[HttpFetcher]:
    """A fetcher that may talk to local servers and takes bodies of a megabyte."""
    defaults: dict[str, Any] = {"allow_private": True, "max_body_bytes": LIMIT}
    fetcher = HttpFetcher(Settings(**(defaults | changes)))
    try:
        yield fetcher
    finally:
        await fetcher.close()
