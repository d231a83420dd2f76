"""Limits for links with similar addresses: which links are kept out, and how that is reported."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from math import inf

from shoal.core.shapes import Trap
from shoal.core.task import Task
from shoal.core.urls import number_of
from shoal.frontier.facts import MOST_SHAPES
from shoal.frontier.sqlite.statements import SQL
from shoal.frontier.sqlite.step import Step, as_json
from shoal.frontier.values import Entry

OF_HOST = ""
"""Stands in place of a shape for all links of the host."""

Alike = dict[str, list[int]]
"""The new links of a host, by the shape of their addresses."""


def keep_out(current: Step, found: dict[int, Task], entries: Iterable[Entry]) -> int:
    """Remove from `found` the links that a limit of the crawl keeps out. Returns how many."""
    shapes = {number_of(entry.fingerprint): entry.shape for entry in entries}
    sites: dict[str, Alike] = {}
    for fingerprint, task in found.items():
        if (shape := shapes[fingerprint]) is not None:
            sites.setdefault(task.site, {}).setdefault(shape, []).append(fingerprint)
    hosts = current.hosts_named(sites) if sites else {}
    unwanted = [
        fingerprint
        for site, alike in sites.items()
        for fingerprint in _beyond_limits(current, hosts[site].id, alike)
    ]
    for fingerprint in unwanted:
        del found[fingerprint]
    return len(unwanted)


def _beyond_limits(current: Step, host_id: int, alike: Alike) -> list[int]:
    """The links of a host that may not be queued. The others are counted."""
    pages = dict(current.execute("alike", host_id, as_json([OF_HOST, *alike])).fetchall())
    total, rules = pages.get(OF_HOST, 0), current.rules
    queued, kept_out = {OF_HOST: 0}, dict.fromkeys([OF_HOST, *alike], 0)
    unwanted: list[int] = []
    for shape, links in alike.items():
        of_host = (rules.max_pages_per_host or inf) - total - queued[OF_HOST]
        of_shape = (rules.max_pages_per_shape or inf) - pages.get(shape, 0)
        room = int(max(min(of_host, of_shape, len(links)), 0))
        queued[OF_HOST] += room
        if shape and (room or shape in pages):
            queued[shape] = room
        kept_out[OF_HOST if of_host <= of_shape else shape] += len(links) - room
        unwanted += links[room:]
    kept = _kept_shapes(current, host_id, queued, pages)
    current.write("count_alike", [(host_id, it, queued[it], kept_out[it]) for it in kept])
    return unwanted


def _kept_shapes(
    current: Step, host_id: int, shapes: Iterable[str], known: Mapping[str, int]
) -> list[str]:
    """Those of the shapes that are counted: the known ones, and new ones while there is room."""
    kept = [shape for shape in shapes if shape in known or shape == OF_HOST]
    new = [shape for shape in shapes if shape and shape not in known]
    if not new:
        return kept
    (stored,) = current.execute("count_shapes", host_id).fetchone()
    if stored + len(new) > MOST_SHAPES:
        stored -= current.execute("forget_shapes", host_id).rowcount
    return kept + new[: max(MOST_SHAPES - stored, 0)]


def traps_of(connection: sqlite3.Connection, crawl_id: int, limit: int) -> list[Trap]:
    """The hosts and shapes from which most links were kept out."""
    return [Trap(*row) for row in connection.execute(SQL["traps"], (crawl_id, limit))]
