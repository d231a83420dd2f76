"""Requests of people on schedules: to run one now, or to pause it. The leader reads them as notes.

A request may have a key chosen by the sender. Repeated with the same key, it means the same run.
Keys are remembered for a day.

    run-keys    DIGEST -> AskedRun
"""

from __future__ import annotations

import secrets
from hashlib import sha256

import msgspec

from shoal.coordinator.cron import run_name
from shoal.coordinator.runs import PAUSED, RUN_REQUESTS, Moment, RunRequest
from shoal.coordinator.schedules import Schedule
from shoal.frontier.board import Notes, decoded, read_all

RUN_KEYS = "run-keys"
KEPT_S = 24 * 3600.0


class AskedRun(msgspec.Struct):
    """A run that was requested with a key."""

    crawl: str
    at: Moment


async def ask_for_run(notes: Notes, schedule: Schedule, now: float, key: str | None = None) -> str:
    """Request a run now. Returns the name of its crawl."""
    at = float(int(now))
    asked = AskedRun(run_name(schedule.name, schedule.calendar, at), at)
    name = secrets.token_hex(8)
    if key is not None:
        name = sha256(f"{schedule.name} {key}".encode("utf-8", "replace")).hexdigest()[:32]
        asked = await _asked_before(notes, name, asked)
    # Write it even if the key is known: the leader ignores a due time that it has handled.
    request = RunRequest(schedule.name, asked.at)
    await notes.write(RUN_REQUESTS, name, msgspec.json.encode(request))
    return asked.crawl


async def _asked_before(notes: Notes, name: str, asked: AskedRun) -> AskedRun:
    """The run requested with this key before; if there is none, store `asked` under the key.

    If two servers get the same key at once, both return the run of the one that was first.
    """
    while True:
        known = await notes.read(RUN_KEYS, name)
        before = decoded(RUN_KEYS, name, known, AskedRun) if known else None
        if before is not None and asked.at - before.at < KEPT_S:
            return before
        if await notes.swap(RUN_KEYS, name, known, msgspec.json.encode(asked)):
            await _forget_old_keys(notes, asked.at)
            return asked


async def _forget_old_keys(notes: Notes, now: float) -> None:
    for name, asked in (await read_all(notes, RUN_KEYS, AskedRun)).items():
        if now - asked.at >= KEPT_S:
            await notes.write(RUN_KEYS, name, None)


async def set_paused(notes: Notes, schedule: Schedule, *, is_paused: bool) -> None:
    """Pause a schedule, or let it continue from its next due time."""
    await notes.write(PAUSED, schedule.name, b"paused" if is_paused else None)
