"""The chore of beginning runs when they are due, and those that people ask for."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from shoal.coordinator.cron import run_name
from shoal.coordinator.runs import (
    PAUSED,
    RUNS,
    SLOTS,
    WISHES,
    Records,
    Run,
    Standing,
    Wish,
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

GRACE_S = 60.0
"""A slot is not missed before it is so old: one leader may have died, and another taken over."""

log = logging.getLogger("shoal")


class Due(NamedTuple):
    """What is to be done about a schedule now."""

    slot: float
    action: str
    """fire, wait, skip, cancel (what runs, then fire), miss, rest."""


def decide(
    schedule: Schedule, standing: Standing, now: float, *, is_running: bool, is_paused: bool
) -> Due | None:
    """What is due. Of several slots that have passed, only the last one counts."""
    slot = schedule.calendar.last_until(now)
    is_new = slot is not None and slot > standing.last
    if not is_new:
        slot = standing.waiting
    if slot is None:
        return None
    if is_paused:
        return Due(slot, "rest")
    if is_new and now - slot > GRACE_S and not schedule.catch_up:
        return Due(slot, "miss")
    if not is_running:
        return Due(slot, "fire")
    if schedule.overlap == "wait":
        return Due(slot, "wait") if is_new else None
    return Due(slot, schedule.overlap)


class Firing:
    """Begins runs by writing them down: planting.py and the workers do the rest."""

    def __init__(self, frontier: IntakeAndUpkeep, records: Records) -> None:
        self._frontier = frontier
        self._notes = records.notes
        self._records = records

    async def look(self, schedules: Mapping[str, Schedule], now: float) -> None:
        """Begin what is due."""
        running = await under_way(self._notes)
        paused = await self._notes.all(PAUSED)
        for schedule in schedules.values():
            own = [run for run in running if run.schedule == schedule.name]
            await self._look(schedule, own, now, is_paused=schedule.name in paused)
        for name, wish in (await read_all(self._notes, WISHES, Wish)).items():
            await self._grant(schedules.get(wish.schedule), name, wish, now)

    async def _look(
        self, schedule: Schedule, running: list[Run], now: float, *, is_paused: bool
    ) -> None:
        standing = await self._standing(schedule, now)
        if standing is None:
            return
        due = decide(schedule, standing, now, is_running=bool(running), is_paused=is_paused)
        if due is None:
            return
        if await self._is_known(schedule, due.slot):
            due = Due(due.slot, "rest")
        if due.action == "wait":
            await self._records.write(SLOTS, schedule.name, Standing(due.slot, due.slot))
            log.warning("schedule %s: waits until %s is over", schedule.name, running[0].crawl)
            return
        await self._act(schedule, due, running, now)
        await self._records.write(SLOTS, schedule.name, Standing(max(due.slot, standing.last)))

    async def _standing(self, schedule: Schedule, now: float) -> Standing | None:
        """How far a schedule has come. None: it begins with its next slot, for it is new, or it has
        come further than the clock: that was wrong then, or is now."""
        standing = await read(self._notes, SLOTS, schedule.name, Standing)
        if standing is not None and standing.last <= now + GRACE_S:
            return standing
        if standing is not None:
            log.warning("schedule %s: the clock has gone back; it begins anew", schedule.name)
        await self._records.write(SLOTS, schedule.name, Standing(now))
        return None

    async def _is_known(self, schedule: Schedule, slot: float) -> bool:
        """Whether a slot was dealt with: by a leader that then died, or before the clock went
        back."""
        crawl = run_name(schedule.name, schedule.calendar, slot)
        for shelf in (RUNS, past(schedule.name)):
            if await self._notes.read(shelf, crawl):
                return True
        return False

    async def _act(self, schedule: Schedule, due: Due, running: list[Run], now: float) -> None:
        if due.action == "cancel":
            for run in running:
                await self._cancel(run)
        if due.action in ("fire", "cancel"):
            await self._fire(schedule, due.slot, now)
        elif due.action == "skip":
            reason = f"{running[0].crawl} is not over"
            await self._leave_out(schedule, due.slot, now, "skipped", reason)
        elif due.action == "miss":
            reason = "no coordinator was running (catch_up = true begins it late)"
            await self._leave_out(schedule, due.slot, now, "missed", reason)

    async def _grant(self, schedule: Schedule | None, name: str, wish: Wish, now: float) -> None:
        if schedule is None:
            asked_for = ascii(wish.schedule[:MAX_NAME])
            log.error("schedule %s: is not in shoal.toml here, and is not run", asked_for)
        else:
            # By the clock of whoever asked, which may be wrong.
            slot = wish.at if wish.at <= now + GRACE_S else now
            if not await self._is_known(schedule, slot):
                await self._fire(schedule, slot, now)
        await self._records.write(WISHES, name, None)

    async def _fire(self, schedule: Schedule, slot: float, now: float) -> None:
        run = _run(
            *(schedule, slot, now),
            previous=await self._previous(schedule, slot),
            deadline=slot + schedule.window_s if schedule.window_s else None,
        )
        await self._records.write(RUNS, run.crawl, run)
        log.info("schedule %s: begins %s", schedule.name, run.crawl)

    async def _previous(self, schedule: Schedule, slot: float) -> str | None:
        if not schedule.recrawl or is_scrapy(schedule.targets):
            return None
        runs = await history(self._notes, schedule.name)
        # Only earlier ones: while a clock was wrong, runs may have been dated years ahead.
        read = [r for r in runs if r.slot < slot and r.state == CrawlState.FINISHED and r.done]
        # One that has missed nothing, if there is one: a bad night must not be the yardstick.
        best = [run for run in read if not run.failed] or read
        return best[0].crawl if best else None

    async def _leave_out(
        self, schedule: Schedule, slot: float, now: float, state: str, reason: str
    ) -> None:
        over: dict[str, Any] = {"state": state, "reason": reason, "ended_at": now}
        run = _run(schedule, slot, now, is_forgotten=True, **over)
        await self._records.write(past(schedule.name), run.crawl, run)
        log.warning("schedule %s: %s is %s: %s", schedule.name, run.crawl, state, reason)

    async def _cancel(self, run: Run) -> None:
        log.warning("schedule %s: cancels %s, the next run is due", run.schedule, run.crawl)
        with suppress(ConfigError):  # It has just finished, or was cancelled before.
            await self._frontier.add(run.crawl, [])  # Its seeds may not even have been begun with.
            await self._frontier.control(run.crawl, Control.CANCEL)


def _run(schedule: Schedule, slot: float, now: float, **fields: Any) -> Run:
    return Run(
        crawl=run_name(schedule.name, schedule.calendar, slot),
        schedule=schedule.name,
        slot=slot,
        fired_at=now,
        **fields,
    )
