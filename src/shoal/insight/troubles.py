"""Says in a few words what is wrong with a crawl, for lists of crawls. Pure."""

from __future__ import annotations

from shoal.frontier.values import CrawlState, Stats
from shoal.insight.status import block_rate

BLOCKED_SHARE = 0.1
DEAD_SHARE = 0.01
TRIED_FEW = 20
"""With fewer tries than this, a share says nothing."""


def troubles(stats: Stats, workers: int | None) -> list[str]:
    """The problems that people should look at. `workers` is the number of workers, if known."""
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
