"""Counts which versions of Shoal and of the spider the workers run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from shoal.frontier.values import Pulse
from shoal.insight.figures import counted

SHOWN = 5
"""How many versions are named in a line."""


class AtWork(msgspec.Struct, frozen=True):
    """The number of workers that run the same versions."""

    version: str
    """The version of Shoal."""
    spider_version: str
    """The version of the spider. Empty: not known."""
    workers: int


def at_work(workers: Iterable[Pulse]) -> list[AtWork]:
    """All versions that run, those with the most workers first."""
    count = Counter((pulse.version, pulse.spider_version) for pulse in workers)
    ranked = sorted(count.items(), key=lambda each: (-each[1], each[0]))
    return [AtWork(*versions, number) for versions, number in ranked]


def version_lines(workers: Sequence[Pulse]) -> list[str]:
    """A line about the versions, if workers run different ones."""
    found = at_work(workers)
    if len(found) < 2:
        return []
    named = [f"{_named(each)} ({counted(each.workers, 'worker')})" for each in found[:SHOWN]]
    if len(found) > SHOWN:
        named.append(f"{len(found) - SHOWN:,} others")
    return [f"{len(found):,} versions at work: {', '.join(named)}"]


def versions_of(pulse: Pulse) -> str:
    """The versions that one worker runs."""
    return _named(AtWork(pulse.version, pulse.spider_version, 1))


def _named(each: AtWork) -> str:
    return f"{each.version} {each.spider_version}".rstrip()
