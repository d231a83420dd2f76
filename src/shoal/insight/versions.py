"""Which versions are at work: of Shoal, and of the spider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from shoal.frontier.values import Pulse
from shoal.insight.figures import counted

SHOWN = 5
"""So many versions are named in a line."""


class AtWork(msgspec.Struct, frozen=True):
    """Workers that run the same."""

    version: str
    """Of Shoal."""
    spider_version: str
    """Of the spider. Empty: it was not told."""
    workers: int


def at_work(workers: Iterable[Pulse]) -> list[AtWork]:
    """All versions, those of most workers first."""
    count = Counter((pulse.version, pulse.spider_version) for pulse in workers)
    ranked = sorted(count.items(), key=lambda each: (-each[1], each[0]))
    return [AtWork(*versions, number) for versions, number in ranked]


def version_lines(workers: Sequence[Pulse]) -> list[str]:
    """What is to be said if it is not the same everywhere."""
    found = at_work(workers)
    if len(found) < 2:
        return []
    named = [f"{_named(each)} ({counted(each.workers, 'worker')})" for each in found[:SHOWN]]
    if len(found) > SHOWN:
        named.append(f"{len(found) - SHOWN:,} others")
    return [f"{len(found):,} versions at work: {', '.join(named)}"]


def versions_of(pulse: Pulse) -> str:
    """What one worker runs, in short."""
    return _named(AtWork(pulse.version, pulse.spider_version, 1))


def _named(each: AtWork) -> str:
    return f"{each.version} {each.spider_version}".rstrip()
