"""What people ask of schedules: a run now, a rest. Written as notes; the leader reads them.

A request may have a key of its sender's choice: repeated with the same key it is the same run. What
was asked with which key is kept for a day.

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
    """A run that was asked for with a key."""

    crawl: str
    at: Moment


async def ask_for_run(notes: Notes, schedule: Schedule, now: float, key: str | None = None) -> str:
    """Ask for a run now; returns its crawl."""
    at = float(int(now))
    asked = AskedRun(run_name(schedule.name, schedule.calendar, at), at)
    name = secrets.token_hex(8)
    if key is not None:
        name = sha256(f"{schedule.name} {key}".encode("utf-8", "replace")).hexdigest()[:32]
        asked = await _asked_before(notes, name, asked)
    # Also if it was asked for before: a leader begins no run of a moment that it knows.
    request = RunRequest(schedule.name, asked.at)
    await notes.write(RUN_REQUESTS, name, msgspec.json.encode(request))
    return asked.crawl


async def _asked_before(notes: Notes, name: str, asked: AskedRun) -> AskedRun:
    """What was asked for with this key; from now on, this. Of two servers that are asked at once,
    one is the first."""
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
    """Have a schedule rest, or go on from its next due time."""
    await notes.write(PAUSED, schedule.name, b"paused" if is_paused else None)
