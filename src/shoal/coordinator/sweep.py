"""The chore of cleaning up: removes crawls of runs that ended long ago, and the oldest history."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from shoal.coordinator.runs import LeaderNotes, history, past
from shoal.coordinator.schedules import Schedule
from shoal.fleet.life_hooks import CLOSED, OPENED
from shoal.frontier.port import Upkeep

KEPT_RUNS = 1000
"""How many runs of a schedule its history keeps."""

STEADY_S = 3600.0
"""How long the clock must have run without a jump before crawls are removed by their age."""
JUMP_S = 60.0
"""A clock that is off by more than this has jumped."""

log = logging.getLogger("shoal")


class Steadiness:
    """Tells whether the clock can be trusted to say what is old.

    A clock that is wrong for a moment must not remove every crawl. Removing one an hour late does
    no harm.
    """

    def __init__(self) -> None:
        self._begin: tuple[float, float] | None = None

    def look(self, now: float, elapsed: float) -> bool:
        """Whether the clock has been steady for `STEADY_S`.

        `now` is the time of the clock, `elapsed` that of a monotonic clock, which cannot be set.
        """
        begun_at, begun = self._begin or (now, elapsed)
        has_jumped = abs((now - begun_at) - (elapsed - begun)) > JUMP_S
        if has_jumped:
            log.warning("the clock has jumped: no queue is forgotten for the next hour")
        if has_jumped or self._begin is None:
            self._begin = now, elapsed
            return False
        return elapsed - begun >= STEADY_S


async def sweep(
    frontier: Upkeep,
    leader_notes: LeaderNotes,
    schedules: Mapping[str, Schedule],
    now: float,
    *,
    is_steady: bool,
) -> None:
    """Remove crawls and history that are no longer needed.

    The results of a run stay, as does its history up to `KEPT_RUNS` runs.
    """
    for schedule in schedules.values():
        runs = await history(leader_notes.notes, schedule.name)
        for run in runs[KEPT_RUNS:]:
            await leader_notes.write(past(schedule.name), run.crawl, None)
        for run in runs[:KEPT_RUNS]:
            is_old = run.ended_at is not None and now - run.ended_at > schedule.keep_s
            if is_steady and is_old and not run.is_forgotten:
                await frontier.forget(run.crawl)
                for topic in (OPENED, CLOSED):
                    await leader_notes.write(topic, run.crawl, None)
                swept = msgspec.structs.replace(run, is_forgotten=True)
                await leader_notes.write(past(schedule.name), run.crawl, swept)
