"""What a worker remembers of the links it has handed to the frontier."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.frontier.port import Entry
from shoal.task import Task


class KnownUrls:
    """Spellings of URLs that are surely in the frontier: asking about them again is needless.

    Most links of a site lead to pages that are known already. Only what the frontier has confirmed
    may be remembered here: a link of a try that came to nothing must be offered again.
    """

    def __init__(self, limit: int = 100_000) -> None:
        self._limit = limit // 2
        self._recent: set[str] = set()
        self._older: set[str] = set()

    def __contains__(self, task: Task) -> bool:
        url = task.url
        return (url in self._recent or url in self._older) and _is_plain(task)

    def add(self, entries: Iterable[Entry]) -> None:
        """The frontier has these now."""
        self._recent.update(entry.task.url for entry in entries if _is_plain(entry.task))
        if len(self._recent) >= self._limit:
            self._older, self._recent = self._recent, set()

    def clear(self) -> None:
        """The crawl was started over: nothing is known."""
        self._recent.clear()
        self._older.clear()


def _is_plain(task: Task) -> bool:
    """Whether the URL alone says which task it is."""
    return task.method == "GET" and task.body is None and not task.dont_filter
