"""Many links at once: they reach the frontier in parts, so that no call holds it up for long."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.errors import ConfigError
from shoal.frontier.port import WorkSource
from shoal.frontier.values import Entry, Lease, Outcome

MAX_LINKS = 5_000
"""Follow-ups that one call may bring."""


async def add_surplus(frontier: WorkSource, crawl: str, outcomes: Sequence[Outcome]) -> None:
    """Add the follow-ups that are too many for the call that finishes their page. It is left with
    the last of them.

    Nothing is lost if we die in between: the page is not finished, so it is visited again, and
    what is known by then is not added twice. If a part fails, the same call goes on with it.
    """
    for outcome in outcomes:
        while len(outcome.follow_ups) > MAX_LINKS:
            part = outcome.follow_ups[:MAX_LINKS]
            if not await _add(frontier, crawl, outcome.lease, part):
                break
            outcome.follow_ups = outcome.follow_ups[MAX_LINKS:]


async def _add(frontier: WorkSource, crawl: str, lease: Lease, part: Sequence[Entry]) -> bool:
    """Add some of a page's links. False if the page is not ours any more: then they are somebody
    else's to bring, and a crawl that was started over would take them for its own."""
    if await frontier.renew(crawl, [lease]):
        return False
    try:
        await frontier.add(crawl, part)
    except ConfigError:  # It was cancelled this very moment.
        return False
    return True
