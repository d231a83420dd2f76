"""What a crawl publishes, for those who run it. Who publishes nothing imports nothing of it."""

from __future__ import annotations

from shoal.config import Settings
from shoal.frontier.port import QueriesAndNotes
from shoal.worker.publishing import Publishing


def publishing_for(settings: Settings, crawl: str, frontier: QueriesAndNotes) -> Publishing | None:
    """Where a worker publishes. None: nowhere. Nothing is asked of the broker yet."""
    if settings.publish is None:
        return None
    from shoal.publish import open_publications

    return open_publications(settings, settings.publish, crawl, frontier)


async def check_publishing(settings: Settings, crawl: str | None = None) -> None:
    """Look whether a worker could publish, before work begins: on a crawl, or on those that will
    come. Raises ConfigError."""
    if settings.publish is None:
        return
    from shoal.publish import check_publisher

    await check_publisher(settings, settings.publish, crawl)
