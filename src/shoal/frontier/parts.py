"""Adds very many links to the frontier in parts, so that no single call blocks it for long."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.errors import ConfigError
from shoal.frontier.port import WorkSource
from shoal.frontier.values import Entry, Lease, Outcome

MAX_LINKS = 5_000
"""How many follow-ups one call may bring."""


async def add_surplus(frontier: WorkSource, crawl: str, outcomes: Sequence[Outcome]) -> None:
    """Add the follow-ups that are too many for the call that finishes their page. The last ones are
    left in the outcome.

    Nothing is lost if the process dies in between: the page is not finished, so it is visited
    again, and follow-ups that were added already are not added twice. If a part fails, calling this
    again with the same outcomes goes on with that part.
    """
    for outcome in outcomes:
        while len(outcome.follow_ups) > MAX_LINKS:
            part = outcome.follow_ups[:MAX_LINKS]
            if not await _add(frontier, crawl, outcome.lease, part):
                break
            outcome.follow_ups = outcome.follow_ups[MAX_LINKS:]


async def _add(frontier: WorkSource, crawl: str, lease: Lease, part: Sequence[Entry]) -> bool:
    """Add some of a page's links. False if the page's lease is no longer ours: then another worker
    brings them, and a crawl that was started over would take these for its own."""
    if await frontier.renew(crawl, [lease]):
        return False
    try:
        await frontier.add(crawl, part)
    except ConfigError:  # The crawl was cancelled meanwhile.
        return False
    return True
