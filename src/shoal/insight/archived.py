"""Finds the archived answers of a task in the page log."""

from __future__ import annotations

from shoal.results.port import PageLog, Results


async def find_archived(
    results: Results, crawl: str, fingerprint: bytes, place: str | None = None
) -> PageLog | None:
    """The newest try at a task whose page is in the archive, or with `place`, the one whose page is
    at that place. None if there is none."""
    tries = await results.pages_of(crawl, fingerprint)
    archived = [page for page in tries if page.archived and place in (None, page.archived)]
    return archived[-1] if archived else None
