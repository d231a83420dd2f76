"""The chore of beginning runs that are due or that people have asked for."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from shoal.coordinator.cron import run_name
from shoal.coordinator.runs import (
    PAUSED,
    PROGRESS,
    RUN_REQUESTS,
    RUNS,
    LeaderNotes,
    Run,
    RunRequest,
    ScheduleProgress,
    history,
    past,
    under_way,
)
from shoal.coordinator.schedules import MAX_NAME, Schedule
from shoal.errors import ConfigError
from shoal.fleet.target import is_scrapy
from shoal.frontier.board import read, read_all
from shoal.frontier.port import IntakeAndUpkeep
from shoal.frontier.values import Control, CrawlState
from shoal.runtime.logs import about

GRACE_S = 60.0
"""How long a run may be overdue before it counts as missed. A new leader may have to take over."""

log = logging.getLogger("shoal")


class Due(NamedTuple):
    """What to do about a due time of a schedule now."""

    at: float
    """The due time."""
    action: str
    """One of: begin, wait, skip, cancel (the current run, then begin), miss, rest."""


def decide(
    schedule: Schedule, progress: ScheduleProgress, now: float, *, is_running: bool, is_paused: bool
) -> Due | None:
    """Decide what to do about a schedule. None: nothing.

    If several due times have passed, only the last one counts.
    """
    due_at = schedule.calendar.last_until(now)
    is_new = due_at is not None and due_at > progress.last
    if not is_new:
        due_at = progress.waiting
    if due_at is None:
        return None
    if is_paused:
        return Due(due_at, "rest")
    if is_new and now - due_at > GRACE_S and not schedule.catch_up:
        return Due(due_at, "miss")
    if not is_running:
        return Due(due_at, "begin")
    if schedule.overlap == "wait":
        return Due(due_at, "wait") if is_new else None
    return Due(due_at, schedule.overlap)


class RunStarter:
    """Begins runs by writing notes on them. seed_runs.py and the workers do the rest."""

    def __init__(self, frontier: IntakeAndUpkeep, leader_notes: LeaderNotes) -> None:
        self._frontier = frontier
        self._notes = leader_notes.notes
        self._leader_notes = leader_notes

    async def look(self, schedules: Mapping[str, Schedule], now: float) -> None:
        """Begin all runs that are due or asked for."""
        running = await under_way(self._notes)
        paused = await self._notes.all(PAUSED)
        for schedule in schedules.values():
            own = [run for run in running if run.schedule == schedule.name]
            await self._look(schedule, own, now, is_paused=schedule.name in paused)
        for name, request in (await read_all(self._notes, RUN_REQUESTS, RunRequest)).items():
            await self._grant(schedules.get(request.schedule), name, request, now)

    async def _look(
        self, schedule: Schedule, running: list[Run], now: float, *, is_paused: bool
    ) -> None:
        progress = await self._progress(schedule, now)
        if progress is None:
            return
        due = decide(schedule, progress, now, is_running=bool(running), is_paused=is_paused)
        if due is None:
            return
        if await self._is_known(schedule, due.at):
            due = Due(due.at, "rest")
        if due.action == "wait":
            waiting = ScheduleProgress(due.at, waiting=due.at)
            await self._leader_notes.write(PROGRESS, schedule.name, waiting)
            log.warning("schedule %s: waits until %s is over", schedule.name, running[0].crawl)
            return
        await self._act(schedule, due, running, now)
        done = ScheduleProgress(max(due.at, progress.last))
        await self._leader_notes.write(PROGRESS, schedule.name, done)

    async def _progress(self, schedule: Schedule, now: float) -> ScheduleProgress | None:
        """The progress of a schedule. None: it begins with its next due time.

        That is so if the schedule is new, or if its progress is ahead of the clock, which was wrong
        then or is wrong now.
        """
        progress = await read(self._notes, PROGRESS, schedule.name, ScheduleProgress)
        if progress is not None and progress.last <= now + GRACE_S:
            return progress
        if progress is not None:
            log.warning("schedule %s: the clock has gone back; it begins anew", schedule.name)
        await self._leader_notes.write(PROGRESS, schedule.name, ScheduleProgress(now))
        return None

    async def _is_known(self, schedule: Schedule, due_at: float) -> bool:
        """Whether a due time was already handled, by a leader that then died or before the clock
        went back."""
        crawl = run_name(schedule.name, schedule.calendar, due_at)
        for topic in (RUNS, past(schedule.name)):
            if await self._notes.read(topic, crawl):
                return True
        return False

    async def _act(self, schedule: Schedule, due: Due, running: list[Run], now: float) -> None:
        if due.action == "cancel":
            for run in running:
                await self._cancel(run)
        if due.action in ("begin", "cancel"):
            await self._begin(schedule, due.at, now)
        elif due.action == "skip":
            reason = f"{running[0].crawl} is not over"
            await self._leave_out(schedule, due.at, now, "skipped", reason)
        elif due.action == "miss":
            reason = "no coordinator was running (catch_up = true begins it late)"
            await self._leave_out(schedule, due.at, now, "missed", reason)

    async def _grant(
        self, schedule: Schedule | None, name: str, request: RunRequest, now: float
    ) -> None:
        if schedule is None:
            asked_for = ascii(request.schedule[:MAX_NAME])
            log.error("schedule %s: not run, because it is not in shoal.toml here", asked_for)
        else:
            # The time comes from the clock of the sender, which may be wrong.
            due_at = request.at if request.at <= now + GRACE_S else now
            if not await self._is_known(schedule, due_at):
                await self._begin(schedule, due_at, now)
        await self._leader_notes.write(RUN_REQUESTS, name, None)

    async def _begin(self, schedule: Schedule, due_at: float, now: float) -> None:
        run = _run(
            schedule,
            due_at,
            now,
            previous=await self._previous(schedule, due_at),
            deadline=due_at + schedule.window_s if schedule.window_s else None,
        )
        await self._leader_notes.write(RUNS, run.crawl, run)
        fields = about(event="run.begin", crawl=run.crawl)
        log.info("schedule %s: begins %s", schedule.name, run.crawl, extra=fields)

    async def _previous(self, schedule: Schedule, due_at: float) -> str | None:
        if not schedule.recrawl or is_scrapy(schedule.targets):
            return None
        runs = await history(self._notes, schedule.name)
        # Only earlier runs: a wrong clock may have dated some years ahead.
        read = [r for r in runs if r.due_at < due_at and r.state == CrawlState.FINISHED and r.done]
        # Prefer a run without failures, as one with failures may lack items that still exist.
        best = [run for run in read if not run.failed] or read
        return best[0].crawl if best else None

    async def _leave_out(
        self, schedule: Schedule, due_at: float, now: float, state: str, reason: str
    ) -> None:
        over: dict[str, Any] = {"state": state, "reason": reason, "ended_at": now}
        run = _run(schedule, due_at, now, is_forgotten=True, **over)
        await self._leader_notes.write(past(schedule.name), run.crawl, run)
        fields = about(event=f"run.{state}", crawl=run.crawl)
        words = "schedule %s: %s is %s: %s"
        log.warning(words, schedule.name, run.crawl, state, reason, extra=fields)

    async def _cancel(self, run: Run) -> None:
        log.warning("schedule %s: cancels %s, the next run is due", run.schedule, run.crawl)
        with suppress(ConfigError):  # It has just finished, or was already cancelled.
            await self._frontier.add(run.crawl, [])  # Create the crawl if no seed was added yet.
            await self._frontier.control(run.crawl, Control.CANCEL)


def _run(schedule: Schedule, due_at: float, now: float, **fields: Any) -> Run:
    return Run(
        crawl=run_name(schedule.name, schedule.calendar, due_at),
        schedule=schedule.name,
        due_at=due_at,
        fired_at=now,
        **fields,
    )
