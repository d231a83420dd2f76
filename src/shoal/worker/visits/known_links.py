"""Remembers the links that a worker has handed to the frontier.

Most links of a site lead to pages that are known already, so asking the frontier about them again
is needless. Only what the frontier has confirmed may be remembered: a link of a try that failed
must be offered again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from shoal.core.task import Task
from shoal.frontier.values import Entry

LIMIT = 100_000

Key = TypeVar("Key")


class Recent(Generic[Key]):
    """A set that forgets its older half when it gets too large."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit // 2
        self._recent: set[Key] = set()
        self._older: set[Key] = set()

    def __contains__(self, key: Key) -> bool:
        return key in self._recent or key in self._older

    def without(self, keys: Iterable[Key]) -> set[Key]:
        """Return the keys that are not in the set."""
        return set(keys) - self._recent - self._older

    def update(self, keys: Iterable[Key]) -> None:
        """Remember these keys."""
        self._recent.update(keys)
        if len(self._recent) >= self._limit:
            self._older, self._recent = self._recent, set()

    def clear(self) -> None:
        """Forget all keys."""
        self._recent.clear()
        self._older.clear()


class KnownUrls:
    """Spellings of URLs that are known to be in the frontier.

    Only their hashes are kept, as a URL may take kilobytes. Python's hash of a text has 64 bits and
    a secret key in each process. The chance that a worker mistakes even one of a billion new links
    for a known one, and so loses it, is one in two hundred thousand; fingerprints are no better.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._hashes = Recent[int](limit)
        self._session: str | None = None

    def begin(self, session: str | None) -> None:
        """From now on, tasks that name no session belong to this one, if it is not None."""
        if session != self._session:
            self._session = session
            self.clear()

    def fresh(self, tasks: Sequence[Task]) -> list[Task]:
        """Return those of a page's tasks that the frontier may not have. It has most of them, so
        the sets are asked for all at once."""
        hashes = [hash(task.url) for task in tasks]
        new = self._hashes.without(hashes)
        each = zip(tasks, hashes, strict=True)
        return [task for task, hashed in each if hashed in new or not self._is_plain(task)]

    def add(self, entries: Iterable[Entry]) -> None:
        """Remember these entries: the frontier has them now."""
        plain = (entry.task for entry in entries if self._is_plain(entry.task))
        self._hashes.update(hash(task.url) for task in plain)

    def clear(self) -> None:
        """Forget all links: the crawl was started over."""
        self._hashes.clear()

    def _is_plain(self, task: Task) -> bool:
        """Whether the URL alone identifies the task."""
        if task.session is not None and task.session != self._session:
            return False
        return task.method == "GET" and task.body is None and not task.dont_filter
