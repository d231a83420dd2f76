"""The chore of forgetting: queues of runs that ended long ago, and the oldest history."""

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
"""How long the clock must have gone as it should before anything is forgotten by it."""
JUMP_S = 60.0
"""A clock that is off by more than this has jumped."""

log = logging.getLogger("shoal")


class Steadiness:
    """Whether the clock can be trusted to say what is old. One that is wrong for a moment must not
    cost every queue there is; what is forgotten an hour late costs nothing."""

    def __init__(self) -> None:
        self._begin: tuple[float, float] | None = None

    def look(self, now: float, elapsed: float) -> bool:
        """`now` is what the clock shows, `elapsed` one that cannot be set."""
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
    """Forget what nobody needs. The results of a run, and what became of it, stay."""
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
