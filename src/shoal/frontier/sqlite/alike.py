"""Limits for links whose addresses are alike: what is kept out, and what is told of that."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from math import inf

from shoal.core.shapes import Trap
from shoal.core.task import Task
from shoal.core.urls import number_of
from shoal.frontier.facts import MOST_SHAPES
from shoal.frontier.sqlite.statements import SQL
from shoal.frontier.sqlite.step import Step
from shoal.frontier.values import Entry


def keep_out(current: Step, found: dict[int, Task], entries: Iterable[Entry]) -> int:
    """Take those out of what was found that a limit of the crawl keeps out. Returns how many."""
    shapes = {number_of(entry.fingerprint): entry.shape for entry in entries}
    groups: dict[tuple[str, str], list[int]] = {}
    for fingerprint, task in found.items():
        if (shape := shapes[fingerprint]) is not None:
            groups.setdefault((task.site, shape), []).append(fingerprint)
    hosts = current.hosts_named(site for site, _ in groups) if groups else {}
    total = 0
    for (site, shape), alike in groups.items():
        room = _room_for_alike(current, hosts[site].id, shape, len(alike))
        for fingerprint in alike[room:]:
            del found[fingerprint]
            total += 1
    return total


def _room_for_alike(current: Step, host_id: int, shape: str, count: int) -> int:
    """How many of so many new links may be queued. They are counted."""
    pages = dict(current.execute("alike", host_id, shape).fetchall())
    of_host = (current.rules.max_pages_per_host or inf) - pages.get("", 0)
    of_shape = (current.rules.max_pages_per_shape or inf) - pages.get(shape, 0)
    room = int(max(min(of_host, of_shape, count), 0))
    reached = "" if of_host <= of_shape else shape
    added = {"": room}
    if shape and (shape in pages or _has_room_for_shape(current, host_id)):
        added[shape] = room
    for name, more in added.items():
        current.execute("count_alike", host_id, name, more, count - room if name == reached else 0)
    return room


def _has_room_for_shape(current: Step, host_id: int) -> bool:
    """Whether one more shape of a host may be kept."""
    (kept,) = current.execute("count_shapes", host_id).fetchone()
    return kept < MOST_SHAPES or current.execute("forget_shapes", host_id).rowcount > 0


def traps_of(connection: sqlite3.Connection, crawl_id: int, limit: int) -> list[Trap]:
    """Of what most links were kept out."""
    return [Trap(*row) for row in connection.execute(SQL["traps"], (crawl_id, limit))]
