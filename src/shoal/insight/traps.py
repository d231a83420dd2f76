"""Reports links that were not followed because of a crawl's limits for pages that are alike."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.config import Rules
from shoal.core.shapes import Trap, kept_out_reason
from shoal.frontier.facts import MOST_TRAPS
from shoal.frontier.port import Queries
from shoal.frontier.values import Entry
from shoal.insight.figures import counted

TRAPS_SHOWN = 10


async def traps_shown(frontier: Queries, crawl: str, rules: Rules) -> list[Trap]:
    """The hosts and URL shapes whose limits kept out the most links. Without limits it is free."""
    if rules.max_pages_per_shape is None and rules.max_pages_per_host is None:
        return []
    return await frontier.traps(crawl, TRAPS_SHOWN)


def trap_lines(traps: Sequence[Trap], rules: Rules) -> list[str]:
    """A line for each trap."""
    return [
        f"{_reason(trap, rules)}: {counted(trap.kept_out, 'link')} not followed" for trap in traps
    ]


async def why_kept_out(frontier: Queries, crawl: str, rules: Rules, entry: Entry) -> str | None:
    """The limit for which this link was probably not followed. None if no limit was reached."""
    if entry.shape is None:
        return None
    for trap in await frontier.traps(crawl, MOST_TRAPS):
        if trap.host == entry.task.site and trap.shape in ("", entry.shape):
            return _reason(trap, rules)
    return None


def _reason(trap: Trap, rules: Rules) -> str:
    most = rules.max_pages_per_shape if trap.shape else rules.max_pages_per_host
    return kept_out_reason(trap.host, trap.shape, most)
