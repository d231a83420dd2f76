"""What is wrong with a crawl, in few words: for lists of crawls. Pure."""

from __future__ import annotations

from shoal.frontier.values import CrawlState, Stats
from shoal.insight.status import block_rate

BLOCKED_SHARE = 0.1
DEAD_SHARE = 0.01
TRIED_FEW = 20
"""Of fewer tries, a share says nothing."""


def troubles(stats: Stats, workers: int | None) -> list[str]:
    """What somebody should look at. `workers` is how many work on it, if that is known."""
    found = []
    if workers == 0 and stats.state is CrawlState.RUNNING and stats.remaining:
        found.append("no workers")
    if stats.sent >= TRIED_FEW and block_rate(stats) > BLOCKED_SHARE:
        found.append("blocked")
    if stats.tried >= TRIED_FEW and stats.dead > DEAD_SHARE * stats.tried:
        found.append(f"{stats.dead / stats.tried:.0%} dead")
    if stats.missing:
        found.append("tasks missing in the broker")
    if stats.foreign:
        found.append("foreign blocks in the broker")
    return found
