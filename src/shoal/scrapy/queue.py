"""The names of scrapy-redis's queues, for SCHEDULER_QUEUE_CLASS.

The order of requests is the frontier's: by priority within a host, and hosts in turn. These classes
do nothing; settings that name them are understood.
"""

from __future__ import annotations

from scrapy.settings import BaseSettings


class PriorityQueue:
    """Requests of higher priority first: as it is with Shoal, within a host."""


class FifoQueue:
    """Oldest first: as it is with Shoal, among requests of one host and priority."""


class LifoQueue:
    """Newest first: Shoal has no such order."""


SpiderQueue = FifoQueue
SpiderStack = LifoQueue
SpiderPriorityQueue = PriorityQueue


def notice(settings: BaseSettings) -> str | None:
    """What to tell a project whose SCHEDULER_QUEUE_CLASS asks for another order than Shoal's."""
    named = settings.get("SCHEDULER_QUEUE_CLASS")
    name = str(getattr(named, "__name__", named or "")).rpartition(".")[2]
    if name in ("", "PriorityQueue", "SpiderPriorityQueue"):
        return None
    return (
        f"SCHEDULER_QUEUE_CLASS {name} is not used: requests go by priority within their host,"
        " the oldest first among equals"
    )
