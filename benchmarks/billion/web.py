"""A synthetic web with hosts of very different sizes, in which every page leads to new URLs.

Each fetched page leads to ten URLs that were never seen. They are distributed over hosts by Zipf's
law: the second gets half of what the first gets, the third a third. So the queue grows by nine URLs
per page, and most of it belongs to few hosts. The crawl ends after a given number of pages.
"""

from __future__ import annotations

from itertools import accumulate
from random import Random

import msgspec

from shoal.core.policy import parse_rate

NEW_PER_PAGE = 10
"""New URLs that each page leads to."""
PAGES_PER_HOST = 100
"""Fetched pages per host, on average. So about a thousand URLs of each host are known."""
ASK_EVERY_S = 0.05
"""Workers report to the frontier about twenty times a second."""


class Web(msgspec.Struct, frozen=True, kw_only=True):
    """A web, and the fleet that crawls it."""

    pages: int
    """Pages to fetch until the crawl is over."""
    hosts: int
    slots: int
    """Requests that the fleet can have in flight."""
    hold_s: float
    """How long a page keeps a slot, on average over all hosts."""
    rate: str = "1/s"
    skew: float = 1.0
    """The exponent of Zipf's law."""
    ask_every_s: float = 0.0
    """How often a worker asks for work. A free slot waits half of that, on average."""

    @property
    def turn_s(self) -> float:
        """The time between two requests to a host."""
        return parse_rate(self.rate).interval_s

    @property
    def fleet_per_s(self) -> float:
        """Pages per second that the fleet can do."""
        return self.slots / (self.hold_s + self.ask_every_s / 2)

    def weights(self) -> list[float]:
        """The share of all links that leads to each host."""
        raw = [rank**-self.skew for rank in range(1, self.hosts + 1)]
        total = sum(raw)
        return [weight / total for weight in raw]

    def latency_s(self, host: int) -> float:
        """How long a host takes to answer: from 0.2 to 1.8 times the average. The golden ratio
        spreads these values evenly over all ranks."""
        return self.hold_s * (0.2 + 1.6 * (host * 0.6180339887 % 1.0))


def web_of(pages: int, per_s: float) -> Web:
    """A web for a crawl of `pages` pages, by a fleet that fetches `per_s` pages a second."""
    slots = max(round(per_s / 2), 1)
    return Web(pages=pages, hosts=_hosts(pages), slots=slots, hold_s=slots / per_s)


def hard_web_of(pages: int) -> Web:
    """The same web for a fleet that fetches nearly as much as the hosts allow, so that each host
    has its turn about once a second. The crawl takes two minutes, however many pages there are."""
    hosts = _hosts(pages)
    slots = max(hosts * 2 // 5, 1)
    return Web(pages=pages, hosts=hosts, slots=slots, hold_s=0.5, ask_every_s=ASK_EVERY_S)


def _hosts(pages: int) -> int:
    return max(pages // PAGES_PER_HOST, 1)


class Links:
    """Draws the hosts that links lead to. The same seed draws the same hosts."""

    def __init__(self, web: Web, seed: int = 7) -> None:
        self._dice = Random(seed)
        self._sums = list(accumulate(web.weights()))
        self._hosts = range(web.hosts)
        self._drawn: list[int] = []

    def of_page(self) -> list[int]:
        """The hosts that the links of another page lead to."""
        if not self._drawn:
            many = 1000 * NEW_PER_PAGE
            self._drawn = self._dice.choices(self._hosts, cum_weights=self._sums, k=many)
        found, self._drawn = self._drawn[-NEW_PER_PAGE:], self._drawn[:-NEW_PER_PAGE]
        return found
