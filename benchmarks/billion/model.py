"""How a crawl goes that finds more than it fetches: a fluid, in steps of time. Pure.

`shoal.insight.advise.fluid` serves queues that are there; here they grow. What they have in common:
all hosts wait equally long for the fleet, so each gets what it can use up to the same level, and
what the others leave goes to those that can use more.

Hosts of nearly the same rank are one kind, so ten million of them take no longer than a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from benchmarks.billion.web import NEW_PER_PAGE, Web

STEPS = 2_000
"""Of time, about."""
ALIKE = 1.05
"""Hosts whose ranks differ by no more are of one kind."""


class Course(msgspec.Struct, frozen=True):
    """How a crawl goes."""

    seconds: float
    per_s: float
    """Pages per second, on the average."""
    longest_queue: float
    """URLs that wait for the largest host in the end."""
    worst_wait_s: float
    """How long a host waits for the fleet when its turn has come."""


class _Kind:
    def __init__(self, hosts: int, weight: float) -> None:
        self.hosts = hosts
        self.weight = weight  # Of each.
        self.waiting = 1.0  # Of each: a crawl begins with one page of every host.


def course_of(web: Web) -> Course:
    """Run the fluid until all pages are fetched."""
    kinds = list(_kinds(web))
    most_per_s = min(web.fleet_per_s, web.hosts / web.turn_s)
    step_s = web.pages / most_per_s / STEPS
    fetched = now = worst_wait_s = 0.0
    while fetched < web.pages:
        # A host gives a page each turn, and none that it has not.
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
    seconds = now + web.hold_s  # The last page is on its way for so long.
    return Course(seconds, web.pages / seconds, kinds[0].waiting, worst_wait_s)


def _level(kinds: list[_Kind], wants: list[float], most_per_s: float) -> float:
    """Pages per second that a host gets at most, so that all together get what there is."""
    left, hosts = most_per_s, sum(kind.hosts for kind in kinds)
    for want, kind in sorted(zip(wants, kinds, strict=True), key=lambda pair: pair[0]):
        if want * hosts >= left:
            return left / hosts
        left -= want * kind.hosts
        hosts -= kind.hosts
    return max(wants)


def _kinds(web: Web) -> Iterator[_Kind]:
    """Hosts by rank, those that are nearly alike as one."""
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
    """What the ranks of a kind weigh together, by the middle one: they are nearly alike."""
    return float((last - first + 1) * ((first + last) / 2) ** -skew)
