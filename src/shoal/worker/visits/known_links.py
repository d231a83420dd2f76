"""What a worker remembers of the links it has handed to the frontier.

Most links of a site lead to pages that are known already: asking the frontier about them again is
needless. Only what the frontier has confirmed may be remembered: a link of a try that came to
nothing must be offered again.
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
        """Those of the keys that it does not have."""
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
    """Spellings of URLs that are surely in the frontier.

    Kept are their hashes, as a URL may take kilobytes. Python's hash of a text has 64 bits and a
    secret key in each process. Of a billion new links a worker takes one for known that is not,
    and so loses it, in one case of two hundred thousand; fingerprints are no better.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._hashes = Recent[int](limit)
        self._session: str | None = None

    def begin(self, session: str | None) -> None:
        """From now on, tasks that name no session go with this one, if it is not None."""
        if session != self._session:
            self._session = session
            self.clear()

    def fresh(self, tasks: Sequence[Task]) -> list[Task]:
        """Those of a page's tasks that the frontier may not have. Most it has: so the sets are
        asked for all of them at once."""
        hashes = [hash(task.url) for task in tasks]
        new = self._hashes.without(hashes)
        each = zip(tasks, hashes, strict=True)
        return [task for task, hashed in each if hashed in new or not self._is_plain(task)]

    def add(self, entries: Iterable[Entry]) -> None:
        """The frontier has these now."""
        plain = (entry.task for entry in entries if self._is_plain(entry.task))
        self._hashes.update(hash(task.url) for task in plain)

    def clear(self) -> None:
        """The crawl was started over: nothing is known."""
        self._hashes.clear()

    def _is_plain(self, task: Task) -> bool:
        """Whether the URL alone says which task it is."""
        if task.session is not None and task.session != self._session:
            return False
        return task.method == "GET" and task.body is None and not task.dont_filter
