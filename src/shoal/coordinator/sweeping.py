"""The chore of forgetting: queues of runs that have long been over, and the oldest history."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.coordinator.runs import Records, history, past
from shoal.coordinator.schedules import Schedule
from shoal.frontier.port import Frontier

KEPT_RUNS = 1000
"""So much of a schedule's history is kept."""


async def sweep(
    frontier: Frontier, records: Records, schedules: Mapping[str, Schedule], now: float
) -> None:
    """Forget what nobody needs. The results of a run, and what became of it, stay."""
    for schedule in schedules.values():
        runs = await history(frontier.notes, schedule.name)
        for run in runs[KEPT_RUNS:]:
            await records.write(past(schedule.name), run.crawl, None)
        for run in runs[:KEPT_RUNS]:
            is_old = run.ended_at is not None and now - run.ended_at > schedule.keep_s
            if is_old and not run.is_forgotten:
                await frontier.forget(run.crawl)
                swept = msgspec.structs.replace(run, is_forgotten=True)
                await records.write(past(schedule.name), run.crawl, swept)
