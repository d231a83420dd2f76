"""Shoal's HTTP client for the bare loop: any difference to Shoal is due to all else it does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.bare import Get
from shoal import config
from shoal.core.task import Task
from shoal.fetch.http.client import HttpFetcher
from shoal.fetch.port import Request


@asynccontextmanager
async def own_client(_concurrency: int) -> AsyncIterator[Get]:
    """Fetch with Shoal's client, which opens as many connections as there are requests."""
    fetcher = HttpFetcher(config.build({"allow_private": True}))

    async def get(url: str) -> bytes:
        response = await fetcher.fetch(Request(Task(url=url)))
        if response.status != 200:
            raise SystemExit(f"benchmarks: {url} was answered with {response.status}")
        return response.body

    yield get
    await fetcher.close()
