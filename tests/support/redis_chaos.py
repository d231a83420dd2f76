"""Assertions on what a crawl on Redis must have done in the end, whatever happened to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from shoal.frontier.values import Stats
from support.links import paths_of
from support.processes import Folder
from support.sites import Hit, Site

DURABLE = ("--appendonly", "yes", "--appendfsync", "always")
"""Options with which a server loses nothing when it is killed."""

WAITING = "waiting for the frontier"
BACK = "the frontier is back"


class Noticed(Protocol):
    """A request that reached a site of any kind."""

    @property
    def at(self) -> float: ...
    @property
    def since(self) -> float: ...


def assert_adds_up(stats: Stats) -> None:
    """Assert that every accepted task is in exactly one state."""
    ended = stats.done + stats.dead + stats.dropped
    assert stats.added == ended + stats.waiting + stats.delayed + stats.leased, stats


def assert_links_are_complete(folder: Folder, sites: Sequence[Site], pages: int) -> Stats:
    """Assert that the crawl `links` is finished, and that every page was fetched and is stored
    exactly once."""
    stats = folder.stats("links")
    assert_adds_up(stats)
    total = len(sites) * (pages + 1)
    assert (stats.state, stats.added, stats.done, stats.inbox) == ("finished", total, total, 0)
    expected = Counter(site.url + path[1:] for site in sites for path in paths_of(pages))
    assert Counter(item["url"] for item in folder.export("links")) == expected
    for site in sites:
        assert set(site.paths) == set(paths_of(pages))
    return stats


def assert_losses_explain_repeats(sites: Sequence[Site], stats: Stats) -> None:
    """Assert that no request was repeated, robots.txt included, except after a lost lease."""
    requests = [hit.path for site in sites for hit in all_hits(site)]
    needed = sum(len({hit.path for hit in all_hits(site)}) for site in sites)
    assert len(requests) <= needed + stats.lost, Counter(requests).most_common(stats.lost + 2)


def assert_rate_holds(hits: Sequence[Noticed], count: int, period_s: float = 1.0) -> None:
    """Assert that no window of `period_s` has more than `count` requests."""
    pairs = zip(hits, hits[count:], strict=False)
    closest_s = min((after.at - before.since for before, after in pairs), default=period_s + 1)
    assert closest_s > period_s, f"{count + 1} requests in {closest_s:.3f} s"


def all_hits(site: Site) -> list[Hit]:
    """All requests of a site, including those for robots.txt."""
    return sorted([*site.robots_hits, *site.hits])
