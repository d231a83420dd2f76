"""Counts what the dead tasks of a crawl died of. It is read from the tasks when somebody asks: that
costs nothing while they die, and does not depend on the workers."""

from __future__ import annotations

from shoal.core.causes import Cause, Failure, cause_of, counted_by_cause
from shoal.frontier.port import Queries
from shoal.frontier.values import Record, Stats

LOOKED_AT = 1_000
"""How many dead tasks are read, those that died last: enough to include every cause that
matters."""


async def causes_of_death(frontier: Queries, stats: Stats) -> list[Cause]:
    """The causes that tasks died of, the most frequent first."""
    if not stats.dead:
        return []
    records = await frontier.dead(stats.crawl, LOOKED_AT)
    return counted_by_cause(map(_failure, records))


def _failure(record: Record) -> Failure:
    task = record.task
    return Failure(cause_of(record.reason, record.detail, task.job_type), record.reason, task.url)
