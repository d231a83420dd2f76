"""Watches all crawls for the leader: every minute it looks at them, keeps a point of each, and
sends alerts. The decisions are made in conditions.py and states.py."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from shoal.alerts.conditions import NO_LEADER, Finding, View, findings
from shoal.alerts.config import AlertConfig, alert_file
from shoal.alerts.messages import Notice, line
from shoal.alerts.notes import last_look, note_look, note_states, states_of
from shoal.alerts.routes import Undelivered
from shoal.alerts.sending import send
from shoal.alerts.states import AlertState, Found, Plan, advance, delivered
from shoal.coordinator.runs import LeaderNotes
from shoal.core.policy import parse_duration
from shoal.errors import StorageError
from shoal.frontier.events import forget_events_of_all_but
from shoal.frontier.port import QueriesAndNotes
from shoal.insight.history import PointKeeper
from shoal.insight.sample import Sample, survey
from shoal.runtime.logs import about
from shoal.runtime.patience import NowAndThen

SWEEP_EVERY_S = 600.0
WARN_EVERY_S = 60.0

log = logging.getLogger("shoal")


class Watcher:
    """A duty of the coordinator that leads: see `coordinator.Duty`."""

    def __init__(
        self,
        frontier: QueriesAndNotes,
        folder: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises ConfigError if the [alerts] of the folder's shoal.toml are wrong."""
        self._frontier = frontier
        self._file = alert_file(folder or Path())
        self._clock = clock

    async def do(self, leader_notes: LeaderNotes) -> None:
        """Look at intervals of `config.every_s`, until cancelled. Raises Deposed."""
        watch = Watch(self._frontier, leader_notes, self._clock())
        warning = NowAndThen(WARN_EVERY_S)
        while True:
            config = self._file.read()
            try:
                await watch.look(config, self._clock())
            except StorageError as error:  # The next look may succeed.
                if warning.is_due():
                    log.error("crawls are not watched: %s", error)
            await asyncio.sleep(config.every_s)


class Watch:
    """The watch of one leader's term. Everything that must outlive the term is in notes."""

    def __init__(
        self, frontier: QueriesAndNotes, leader_notes: LeaderNotes, began_at: float
    ) -> None:
        self._frontier = frontier
        self._leader_notes = leader_notes
        self._began_at = began_at
        self._points = PointKeeper(leader_notes)
        self._last: dict[str, Sample] = {}
        self._states: dict[str, AlertState] | None = None
        self._sweeping = NowAndThen(SWEEP_EVERY_S)

    async def look(self, config: AlertConfig, now: float) -> None:
        """Look at all crawls once, and send the alerts that are due. Raises Deposed and
        StorageError."""
        notes = self._leader_notes.notes
        found = []
        seen = await survey(self._frontier, now)
        if self._states is None:
            # Without routes and live crawls, nothing was missed while nobody led.
            if config.routes or any(sample.stats.state.live for sample in seen.samples):
                found += await self._gap(config)
            self._states = await states_of(notes)
        for sample in seen.samples:
            found += await self._look_at(sample, config)
        self._last = {sample.crawl: sample for sample in seen.samples}
        self._points.uncache_all_but(self._last)
        plan = Plan(list(config.routes), parse_duration(config.times.again))
        states = advance(self._states, found, plan, now, watched=self._last.keys())
        await self._move_to(states)
        await note_look(self._leader_notes, now)
        await self._move_to(await _deliver_owed(self._states, config, self._leader_notes, now))
        if self._sweeping.is_due():
            crawls = {stats.crawl for stats in await self._frontier.crawls()}
            await self._points.forget_all_but(crawls)
            await forget_events_of_all_but(notes, crawls, self._leader_notes.leader)

    async def _look_at(self, sample: Sample, config: AlertConfig) -> list[Found]:
        points = await self._points.keep(sample)
        limits = config.limits_of(sample)
        view = View(sample, points, limits, self._last.get(sample.crawl))
        return [Found(name, finding, limits, sample) for name, finding in findings(view).items()]

    async def _gap(self, config: AlertConfig) -> list[Found]:
        """A finding if there was no leader for too long before this term."""
        limits = config.limits_of_all()
        last, limit = await last_look(self._leader_notes.notes), parse_duration(limits.no_leader)
        gap_s = self._began_at - (last or self._began_at)
        if gap_s <= max(limit, 2 * config.every_s) or NO_LEADER.name in limits.off:
            return []
        text = f"no coordinator was leading for {gap_s / 60:,.0f} minutes, until now"
        return [Found(NO_LEADER.name, Finding(gap_s, limit, text), limits)]

    async def _move_to(self, states: dict[str, AlertState]) -> None:
        before = self._states or {}
        _log_changes(before, states)
        await note_states(self._leader_notes, before, states)
        self._states = states


async def _deliver_owed(
    states: Mapping[str, AlertState], config: AlertConfig, leader_notes: LeaderNotes, now: float
) -> dict[str, AlertState]:
    """Send each route what is owed to it, in one message. Returns the states after that."""
    owed = {
        name: [state for state in states.values() if name in state.owed] for name in config.routes
    }
    sending = {
        name: _send_to(name, config, Notice(alerts, now, leader_notes.leader.holder))
        for name, alerts in owed.items()
        if alerts
    }
    went = dict(zip(sending, await asyncio.gather(*sending.values()), strict=True))
    # Nothing is owed to a route that is not in shoal.toml any more.
    return {
        key: delivered(state, lambda name: went.get(name, name not in config.routes))
        for key, state in states.items()
    }


async def _send_to(name: str, config: AlertConfig, notice: Notice) -> bool:
    try:
        await send(config.routes[name], notice, message_id(name, notice))
    except Undelivered as error:
        log.error("alerts were not delivered by %s: %s", name, error)
        return False
    return True


def message_id(route: str, notice: Notice) -> str:
    """An id for a message. It is the same if the next leader sends the same news again."""
    news = "\n".join(sorted(f"{a.key} {a.state} {a.told_at}" for a in notice.alerts))
    return "msg_" + sha256(f"{route}: {news}".encode()).hexdigest()[:32]


def _log_changes(before: Mapping[str, AlertState], after: Mapping[str, AlertState]) -> None:
    for key, state in after.items():
        was = before.get(key)
        if state.state != "pending" and (was is None or was.state != state.state):
            level = logging.WARNING if state.state == "firing" else logging.INFO
            fields = about(event=f"alert.{state.state}", crawl=state.crawl)
            log.log(level, "alert: %s", line(state), extra=fields)
