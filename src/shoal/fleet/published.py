"""Opens and checks what a crawl publishes to. shoal.publish is imported only where it is used."""

from __future__ import annotations

from shoal.config import Settings
from shoal.frontier.port import QueriesAndNotes
from shoal.worker.publishing import Publishing


def publishing_for(settings: Settings, crawl: str, frontier: QueriesAndNotes) -> Publishing | None:
    """Where a worker publishes; None if nowhere. The broker is not contacted yet."""
    if settings.publish is None:
        return None
    from shoal.publish import open_publications

    return open_publications(settings, settings.publish, crawl, frontier)


async def check_publishing(settings: Settings, crawl: str | None = None) -> None:
    """Check before work begins that a worker could publish: for one crawl, or if None, for those to
    come. Raises ConfigError if not."""
    if settings.publish is None:
        return
    from shoal.publish import check_publisher

    await check_publisher(settings, settings.publish, crawl)
