"""Fetches pages: the port, its implementations, the guard, and the factory for fetchers.

Imports runtime, config and core.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from shoal.config import Settings
from shoal.core.task import Task
from shoal.fetch.http.client import HttpFetcher
from shoal.fetch.port import Fetcher, Request, Response


def open_fetcher(settings: Settings) -> Fetcher:
    """A fetcher over HTTP. Must be called while the event loop runs. Raises ConfigError."""
    return HttpFetcher(settings)


class Fetchers(Fetcher):
    """Combines several fetchers: each request goes to the fetcher that its task needs."""

    def __init__(
        self,
        usual: Fetcher,
        openers: Mapping[str, Callable[[], Fetcher]],
        kind_of: Callable[[Task], str | None],
    ) -> None:
        """`kind_of` names the opener that a task needs; None means the usual fetcher."""
        self.user_agent = usual.user_agent
        self._usual = usual
        self._openers = openers
        self._kind_of = kind_of
        self._opened: dict[str, Fetcher] = {}

    def fetch(self, request: Request) -> Coroutine[Any, Any, Response]:
        """Fetch with the fetcher that the request's task needs."""
        return self.for_task(request.task).fetch(request)

    def for_task(self, task: Task) -> Fetcher:
        """The fetcher for a task. The first task that needs a fetcher opens it."""
        kind = self._kind_of(task)
        if kind is None:
            return self._usual
        if kind not in self._opened:
            self._opened[kind] = self._openers[kind]()
        return self._opened[kind]

    async def close(self) -> None:
        """Close all open fetchers."""
        for fetcher in (self._usual, *self._opened.values()):
            await fetcher.close()
