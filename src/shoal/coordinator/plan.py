"""Summarises schedules for display: when they are due, what is running, how the last run ended."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.coordinator.begin import GRACE_S
from shoal.coordinator.lateness import lateness
from shoal.coordinator.runs import PAUSED, Run, history, under_way
from shoal.coordinator.schedules import Schedule
from shoal.core.addresses import masked
from shoal.errors import UnknownCrawl
from shoal.frontier.port import HasNotes, Overview


class Planned(msgspec.Struct, kw_only=True):
    """The summary of a schedule: when it is due, what is running, how its last run ended."""

    name: str
    target: str
    cron: str
    timezone: str
    next_at: float | None
    next_local: str | None
    """`next_at` in local time of its time zone."""
    is_paused: bool
    running: list[str]
    late: str | None = None
    """A message if a run is late or will be: see `lateness`."""
    last: Run | None = None
    """The newest run that is over or was left out."""


async def plan(frontier: HasNotes, schedules: Mapping[str, Schedule], now: float) -> list[Planned]:
    """Summarise all schedules, in the order of shoal.toml."""
    running = await under_way(frontier.notes)
    paused = await frontier.notes.all(PAUSED)
    return [
        await _planned(frontier, schedule, running, now, schedule.name in paused)
        for schedule in schedules.values()
    ]


async def _planned(
    frontier: HasNotes, schedule: Schedule, running: list[Run], now: float, is_paused: bool
) -> Planned:
    own = [run for run in running if run.schedule == schedule.name]
    past = await history(frontier.notes, schedule.name)
    due_at = None if is_paused else schedule.calendar.next_after(now)
    return Planned(
        name=schedule.name,
        target=" ".join(map(masked, schedule.targets)),
        cron=schedule.cron,
        timezone=schedule.timezone,
        next_at=due_at,
        next_local=schedule.calendar.local(due_at).isoformat(" ", "seconds") if due_at else None,
        is_paused=is_paused,
        running=[run.crawl for run in own],
        late=await _late(frontier, own, now),
        # A wrong clock may have dated runs years ahead.
        last=next((run for run in past if run.due_at <= now + GRACE_S), None),
    )


async def _late(frontier: Overview, running: list[Run], now: float) -> str | None:
    for run in running:
        try:
            news = lateness(run.deadline, await frontier.stats(run.crawl), now)
        except UnknownCrawl:
            continue
        if news:
            return news
    return None
