"""What is counted of a crawl. Each counter is declared here, and nowhere else.

Outcomes and statistics have these fields; the columns of SQLite files, the statement that moves
them and the lists of the Redis scripts are made from them. To count one more thing of each page:
add a field to `PageCounts`, set it where the page's outcome is made, and show it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import msgspec


class PageCounts(msgspec.Struct, kw_only=True):
    """What one try at a page adds to the counters of its crawl. Frontiers sum it up."""

    filtered: int = 0
    """Links that were not admitted: other hosts, too deep, not http."""
    duplicates: int = 0
    """Links that were in the frontier already. Of a try, those that the worker itself knew of."""
    items: int = 0
    rejected: int = 0
    """Items that did not pass validation."""
    body_bytes: int = 0
    """Bytes of bodies, unpacked."""
    wire_bytes: int = 0
    """Bytes on the wire, of requests and answers, robots.txt included; without TLS and TCP."""
    blocked: int = 0
    """Requests that the host refused to serve (403, 429, 503). Of a try, 1 or 0."""
    unchanged: int = 0
    """Pages that were the same as in an earlier crawl, and were not sent again (304)."""
    files: int = 0
    """Files of items that were stored, or were stored already (304)."""


class Counts(PageCounts, kw_only=True):
    """All counters of a crawl: those of its pages, and those that the steps of a frontier move."""

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
    """Requests for pages that went out."""


PAGE_COUNTERS = PageCounts.__struct_fields__
COUNTERS = Counts.__struct_fields__

page_counts: Callable[[PageCounts], tuple[int, ...]] = attrgetter(*PAGE_COUNTERS)
"""What a try adds to the counters, in the order of `PAGE_COUNTERS`."""
