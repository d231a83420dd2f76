"""Makes entries for the frontier of Scrapy requests: decides which task a request is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import uuid4

from scrapy import Request
from scrapy.crawler import Crawler

from shoal.core.task import Task
from shoal.core.urls import FINGERPRINT_BYTES, digest
from shoal.frontier.values import Entry
from shoal.scrapy.wire.requests import Requests
from shoal.scrapy.worker.engine import is_starting
from shoal.scrapy.worker.verdicts import Life
from shoal.seeds.sitemap_tasks import SITEMAP, redirected_id
from shoal.worker.visits.known_links import Recent


class Entries:
    """Makes frontier entries of requests.

    A request with `dont_filter` is a task of its own each time it is yielded. In start() that
    would fetch a page once per process and once per restart. So there, the first request of its
    kind is like any other request, and the second, third, ... are the same tasks as in every
    other process.
    """

    def __init__(self, crawler: Crawler, requests: Requests, known: Recent[bytes]) -> None:
        self._crawler = crawler
        self._requests = requests
        self._known = known
        self._starts: Counter[bytes] = Counter()

    def entry_for(self, request: Request, parent: Life | None) -> Entry | None:
        """Return the entry of a request that a page led to. None if the frontier is known to have
        it. Raises ShoalError if it cannot be queued."""
        fingerprint = self._identity(request, parent)
        if fingerprint in self._known:
            if parent is not None:
                parent.duplicates += 1
            return None
        task = self._requests.encode(request)
        if parent is not None:
            task.parent = parent.lease.fingerprint.hex()
        return Entry(fingerprint, task)

    def entries_from(self, requests: Sequence[Request], origin: str) -> list[Entry]:
        """Return the entries of requests that came from outside. Those with `dont_filter` are named
        by their origin and position."""
        return [
            Entry(
                _named(f"{origin} {number}") if request.dont_filter else self._plain(request),
                self._requests.encode(request),
            )
            for number, request in enumerate(requests)
        ]

    def _identity(self, request: Request, parent: Life | None) -> bytes:
        if not request.dont_filter:
            return self._plain(request)
        if parent is None and is_starting(self._crawler):
            return self._of_start(self._plain(request))
        return _named(_redirected_sitemap(request, parent) or uuid4().hex)

    def _of_start(self, fingerprint: bytes) -> bytes:
        self._starts[fingerprint] += 1
        times = self._starts[fingerprint]
        return fingerprint if times == 1 else _named(f"{fingerprint.hex()} {times}")

    def _plain(self, request: Request) -> bytes:
        return self._requests.fingerprint(request)


def _redirected_sitemap(request: Request, parent: Life | None) -> str:
    """Return the identity of the target that a sitemap redirects to; empty for other requests. A
    sitemap yields nothing else."""
    if parent is None or parent.lease.task.job_type != SITEMAP:
        return ""
    return redirected_id(Task(url=request.url, meta=request.meta))


def _named(name: str) -> bytes:
    return digest(f"task {name}")[:FINGERPRINT_BYTES]
