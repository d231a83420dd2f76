"""The names of scrapy-redis's queues, for SCHEDULER_QUEUE_CLASS.

The frontier orders requests: by priority within a host, and hosts in turn. These classes do
nothing; they exist so that settings which name them are understood.
"""

from __future__ import annotations

from scrapy.settings import BaseSettings


class PriorityQueue:
    """Higher priority first: Shoal's order within a host."""


class FifoQueue:
    """Oldest first: Shoal's order among requests of one host and priority."""


class LifoQueue:
    """Newest first: Shoal has no such order."""


SpiderQueue = FifoQueue
SpiderStack = LifoQueue
SpiderPriorityQueue = PriorityQueue


def notice(settings: BaseSettings) -> str | None:
    """Return what to tell a project whose SCHEDULER_QUEUE_CLASS asks for another order than
    Shoal's, or None."""
    named = settings.get("SCHEDULER_QUEUE_CLASS")
    name = str(getattr(named, "__name__", named or "")).rpartition(".")[2]
    if name in ("", "PriorityQueue", "SpiderPriorityQueue"):
        return None
    return (
        f"SCHEDULER_QUEUE_CLASS {name} is not used: requests go by priority within their host,"
        " the oldest first among equals"
    )
