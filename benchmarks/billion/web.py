"""A web that is made up: hosts of very different sizes, and a crawl that finds ever more of them.

Each page that is fetched leads to ten URLs that nobody has seen. They go to hosts as Zipf has it:
the second gets half of what the first gets, the third a third. So the queue grows by nine for every
page, and most of it is of few hosts. The crawl is over when it has fetched as many pages as it was
to.
"""

from __future__ import annotations

from itertools import accumulate
from random import Random

import msgspec

from shoal.core.policy import parse_rate

NEW_PER_PAGE = 10
"""URLs that a page leads to and nobody knew."""
PAGES_PER_HOST = 100
"""That are fetched, on the average: so a host has a thousand URLs that are known."""
ASK_EVERY_S = 0.05
"""Workers tell the frontier what they have done about twenty times a second."""


class Web(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to crawl, and what it is crawled with."""

    pages: int
    """To be fetched; then the crawl is over."""
    hosts: int
    slots: int
    """Requests that the fleet can have in flight."""
    hold_s: float
    """How long a page keeps a slot, on the average of hosts."""
    rate: str = "1/s"
    skew: float = 1.0
    """The exponent of Zipf's law."""
    ask_every_s: float = 0.0
    """How often a worker asks for work: its slots wait for that, half of it on the average."""

    @property
    def turn_s(self) -> float:
        """The time between two requests to a host."""
        return parse_rate(self.rate).interval_s

    @property
    def fleet_per_s(self) -> float:
        """Pages per second that the fleet can do."""
        return self.slots / (self.hold_s + self.ask_every_s / 2)

    def weights(self) -> list[float]:
        """Which part of all links leads to each host."""
        raw = [rank**-self.skew for rank in range(1, self.hosts + 1)]
        total = sum(raw)
        return [weight / total for weight in raw]

    def latency_s(self, host: int) -> float:
        """How long a host takes to answer: a fifth of the average to nine fifths. The golden ratio
        spreads them evenly over all ranks."""
        return self.hold_s * (0.2 + 1.6 * (host * 0.6180339887 % 1.0))


def web_of(pages: int, per_s: float) -> Web:
    """The web for a crawl of so many pages, by a fleet that does so many a second."""
    slots = max(round(per_s / 2), 1)
    return Web(pages=pages, hosts=_hosts(pages), slots=slots, hold_s=slots / per_s)


def hard_web_of(pages: int) -> Web:
    """The same web for a fleet that does nearly what the hosts allow: all of them have their turn
    once a second or so. It is over in two minutes, however many pages there are."""
    hosts = _hosts(pages)
    slots = max(hosts * 2 // 5, 1)
    return Web(pages=pages, hosts=hosts, slots=slots, hold_s=0.5, ask_every_s=ASK_EVERY_S)


def _hosts(pages: int) -> int:
    return max(pages // PAGES_PER_HOST, 1)


class Links:
    """Where the links of pages lead. The same for the same seed."""

    def __init__(self, web: Web, seed: int = 7) -> None:
        self._dice = Random(seed)
        self._sums = list(accumulate(web.weights()))
        self._hosts = range(web.hosts)
        self._drawn: list[int] = []

    def of_page(self) -> list[int]:
        """The hosts of the links of one more page."""
        if not self._drawn:
            many = 1000 * NEW_PER_PAGE
            self._drawn = self._dice.choices(self._hosts, cum_weights=self._sums, k=many)
        found, self._drawn = self._drawn[-NEW_PER_PAGE:], self._drawn[:-NEW_PER_PAGE]
        return found
