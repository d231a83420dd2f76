"""The counters of a crawl. Each counter is declared here and nowhere else.

Outcomes and statistics have these fields. The columns of SQLite files, the statement that updates
them and the lists in the Redis scripts are generated from them. To count something more for each
page, add a field to `PageCounts`, set it where the page's outcome is made, and show it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import msgspec


class PageCounts(msgspec.Struct, kw_only=True):
    """What one try at a page adds to its crawl's counters. Frontiers sum these up."""

    filtered: int = 0
    """Links that were not admitted: other hosts, too deep, not http."""
    duplicates: int = 0
    """Links that were already in the frontier. For a single try: those that the worker knew."""
    items: int = 0
    rejected: int = 0
    """Items that failed validation."""
    body_bytes: int = 0
    """Bytes of bodies, decompressed."""
    wire_bytes: int = 0
    """Bytes of requests and responses on the wire, robots.txt included, without TLS and TCP."""
    blocked: int = 0
    """Requests that the host refused to serve (403, 429, 503). For a single try: 1 or 0."""
    unchanged: int = 0
    """Pages that have not changed since an earlier crawl and were not sent again (304)."""
    files: int = 0
    """Files of items that were stored now, or were stored already (304)."""


class Counts(PageCounts, kw_only=True):
    """All counters of a crawl: those of its pages, and those that the frontier's steps update."""

    added: int = 0
    waiting: int = 0
    delayed: int = 0
    leased: int = 0
    done: int = 0
    dead: int = 0
    dropped: int = 0
    retries: int = 0
    lost: int = 0
    """Leases that ended because their worker died."""
    sent: int = 0
    """Requests for pages that were sent."""


PAGE_COUNTERS = PageCounts.__struct_fields__
COUNTERS = Counts.__struct_fields__

page_counts: Callable[[PageCounts], tuple[int, ...]] = attrgetter(*PAGE_COUNTERS)
"""The values that a try adds to the counters, in the order of `PAGE_COUNTERS`."""
