"""Says in lines why a crawl is slow and what others hold of it, for `status` and the dashboard."""

from __future__ import annotations

from shoal.core.ledger import SlotTime
from shoal.fleet.looking import Glance
from shoal.frontier.values import Stats
from shoal.insight.exit_lines import exit_lines
from shoal.insight.feed_lines import feed_lines
from shoal.insight.figures import counted
from shoal.insight.session_lines import session_lines
from shoal.insight.slowness import missing_tasks, why_slow
from shoal.insight.status import Snapshot
from shoal.insight.versions import version_lines

REPAIR = "pause the crawl, then shoal seed CRAWL --repair"
"""What those are told who have emptied a broker's queues."""


def slow_lines(seen: Snapshot) -> list[str]:
    """Why the crawl is slow at the moment, and how to repair a broker that has lost tasks."""
    stats = seen.stats
    lines = []
    missing = missing_tasks(stats) if stats.missing else ""
    if (why := why_slow(_glance_at(seen))) and why != missing:
        lines.append(f"slow: {why}")
    if missing:
        lines.append(f"{missing}: {REPAIR}")
    return lines


def note_lines(seen: Snapshot, now: float) -> list[str]:
    """What brokers, exits, accounts, workers of several versions and feeds add to the counters."""
    return [
        *_with_others(seen.stats),
        *exit_lines(seen, now),
        *session_lines(seen, now),
        *version_lines(seen.workers),
        *feed_lines(seen, now),
    ]


def _glance_at(seen: Snapshot) -> Glance:
    lately = [pulse.lately.slots for pulse in seen.workers if pulse.lately]
    at = max((pulse.at for pulse in seen.workers), default=0.0)
    return Glance(stats=seen.stats, at=at, slots=sum(lately, SlotTime()), hosts=seen.busiest)


def _with_others(stats: Stats) -> list[str]:
    """What a broker has, or others have left."""
    lines = []
    if stats.outside:
        lines.append(f"with the broker: {stats.outside:,} blocks of tasks")
    if stats.foreign:
        lines.append(f"from the broker: {counted(stats.foreign, 'foreign block')}, not let in")
    if stats.broker_requests:
        cost = f"{stats.broker_requests:,} requests, about ${stats.broker_cost:,.4f}"
        lines.append(f"to the broker: {cost}")
    if stats.inbox or stats.refused:
        lines.append(f"inbox: {stats.inbox:,} to be read, {stats.refused:,} rejected")
    return lines
