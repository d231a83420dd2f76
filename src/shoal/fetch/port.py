"""The fetch port: a task goes out, one response comes back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import inf

import msgspec

from shoal.core.task import Task


class Response(msgspec.Struct):
    """What a server answered, whatever its status."""

    url: str
    """The task's address: a redirect is a response of its own and is never followed here."""
    status: int
    headers: Mapping[str, str]
    """By name in any case. Bytes that are not UTF-8 are kept as surrogate escapes."""
    body: bytes
    """Complete and decompressed."""
    duration_s: float


class Fetcher(ABC):
    """Sends one request per call: every one had its own permission, so none is repeated."""

    @abstractmethod
    async def fetch(self, task: Task, send_by: float = inf) -> Response:
        """Get the task's page. Raises FetchError, or one of its kinds: Refused, TooLarge; TooLate
        if nothing was sent by the monotonic moment `send_by`, OwnFault if nothing could be.

        The message is one line for people, `retryable` says whether trying again may help.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close all connections. Calls to `fetch` must have ended or been cancelled."""
