"""Kills workers at moments of a crawl that a test draws."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from random import Random

from support.links import GatedSite
from support.processes import Running, is_alive
from support.until import until_now


def kill_workers(
    crawl: Running, site: GatedSite, workers: int, moments: Iterable[int], random: Random
) -> None:
    """Kill one of the workers each time the site has seen so many requests. All must have been
    replaced before the next dies. Afterwards the site answers everything."""
    for moment in sorted(moments):
        site.allowed = moment
        until_now("requests under way", lambda: len(site.hits) > site.allowed)
        until_now("the workers", lambda: len(crawl.workers()) == workers)
        victim = random.choice(crawl.workers())
        os.kill(victim, signal.SIGKILL)
        until_now("its end", lambda pid=victim: not is_alive(pid))  # type: ignore[misc]
    site.allowed = 10**9
