"""Models a crawl that finds more than it fetches, as a fluid in steps of time. Pure.

`shoal.insight.advise.fluid` serves fixed queues; here they grow. In both, all hosts wait equally
long for the fleet: each gets what it can use, up to a common level, and what some leave unused goes
to those that can use more.

Hosts of nearly the same rank are treated as one kind, so ten million hosts take no longer than a
thousand.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from benchmarks.billion.web import NEW_PER_PAGE, Web

STEPS = 2_000
"""How many steps a crawl is divided into, about."""
ALIKE = 1.05
"""Hosts whose ranks differ by at most this factor are of one kind."""


class Course(msgspec.Struct, frozen=True):
    """How a crawl goes."""

    seconds: float
    per_s: float
    """Pages per second, on average."""
    longest_queue: float
    """URLs that wait for the largest host at the end."""
    worst_wait_s: float
    """How long a host waits for the fleet when its turn has come."""


class _Kind:
    def __init__(self, hosts: int, weight: float) -> None:
        self.hosts = hosts
        self.weight = weight  # Per host.
        self.waiting = 1.0  # Per host. A crawl begins with one page of each.


def course_of(web: Web) -> Course:
    """Run the fluid until all pages are fetched."""
    kinds = list(_kinds(web))
    most_per_s = min(web.fleet_per_s, web.hosts / web.turn_s)
    step_s = web.pages / most_per_s / STEPS
    fetched = now = worst_wait_s = 0.0
    while fetched < web.pages:
        # A host gives at most one page per turn, and no more than are waiting.
        wants = [min(1 / web.turn_s, kind.waiting / step_s) for kind in kinds]
        level = _level(kinds, wants, web.fleet_per_s)
        per_s = sum(kind.hosts * min(want, level) for kind, want in zip(kinds, wants, strict=True))
        part = min((web.pages - fetched) / (per_s * step_s), 1.0)
        for kind, want in zip(kinds, wants, strict=True):
            found = NEW_PER_PAGE * per_s * kind.weight
            kind.waiting += (found - min(want, level)) * step_s * part
        if now > 0:  # At the very beginning all hosts are ready at once.
            worst_wait_s = max(worst_wait_s, 1 / level - web.turn_s)
        fetched += per_s * step_s * part
        now += step_s * part
    seconds = now + web.hold_s  # The last page takes that long.
    return Course(seconds, web.pages / seconds, kinds[0].waiting, worst_wait_s)


def _level(kinds: list[_Kind], wants: list[float], most_per_s: float) -> float:
    """The common limit of pages per second and host at which all hosts together use the fleet."""
    left, hosts = most_per_s, sum(kind.hosts for kind in kinds)
    for want, kind in sorted(zip(wants, kinds, strict=True), key=lambda pair: pair[0]):
        if want * hosts >= left:
            return left / hosts
        left -= want * kind.hosts
        hosts -= kind.hosts
    return max(wants)


def _kinds(web: Web) -> Iterator[_Kind]:
    """All hosts by rank, grouped into kinds."""
    total = sum(_weight_of(first, last, web.skew) for first, last in _ranks(web.hosts))
    for first, last in _ranks(web.hosts):
        hosts = last - first + 1
        yield _Kind(hosts, _weight_of(first, last, web.skew) / total / hosts)


def _ranks(hosts: int) -> Iterator[tuple[int, int]]:
    first = 1
    while first <= hosts:
        last = min(max(int(first * ALIKE), first), hosts)
        yield first, last
        first = last + 1


def _weight_of(first: int, last: int, skew: float) -> float:
    """The total weight of the hosts of a kind, approximated by the weight of the middle rank."""
    return float((last - first + 1) * ((first + last) / 2) ** -skew)
