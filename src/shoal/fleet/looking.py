"""Observes a running crawl: reads its counters at every look, and now and then its workers and
hosts, which show why it is slow."""

from __future__ import annotations

import msgspec

from shoal.config import Settings
from shoal.core.ledger import SlotTime
from shoal.frontier.patient import patient
from shoal.frontier.port import Queries
from shoal.frontier.values import Host, Pulse, Stats
from shoal.runtime.patience import NowAndThen, awaited

CLOSER_EVERY_S = 2.0
"""Least time between two looks at workers and hosts."""
FOR_EACH_WORKER_S = 0.05
"""Least time between two such looks, per worker: in a large fleet, many processes may each look at
all workers."""
HOSTS_SEEN = 20

_STORES = {"postgresql": "PostgreSQL", "redis-stream": "the stream of results"}


class Glance(msgspec.Struct, kw_only=True):
    """What is seen of a crawl at one moment."""

    stats: Stats
    at: float = 0.0
    """When the last report of a worker arrived, by the frontier's clock."""
    slots: SlotTime = SlotTime()
    """How the slots of all workers spent their time lately."""
    hosts: list[Host] = []
    """The hosts with the most work left."""
    store: str = "the results store"
    """The store of the items, in words."""
    awaited: list[str] = []
    """Stores that do not answer, for which this process waits."""


class Onlooker:
    """Looks at one crawl repeatedly."""

    def __init__(self, frontier: Queries, crawl: str, settings: Settings) -> None:
        self._frontier = patient(frontier)
        self._crawl = crawl
        self._closer = NowAndThen(CLOSER_EVERY_S)
        self._slots: dict[str, SlotTime] = {}
        scheme = settings.results.partition(":")[0]
        self._last = {"store": _STORES.get(scheme, Glance.store)} if scheme in _STORES else {}
        self._seen: tuple[float, SlotTime, list[Host]] = (0.0, SlotTime(), [])

    async def look(self) -> Glance:
        """Read the crawl's current state. Raises UnknownCrawl."""
        stats = await self._frontier.stats(self._crawl)
        if self._closer.is_due():
            await self._look_closer()
        at, slots, hosts = self._seen
        return Glance(stats=stats, at=at, slots=slots, hosts=hosts, awaited=awaited(), **self._last)

    async def _look_closer(self) -> None:
        pulses = await self._frontier.workers(self._crawl)
        every_s = max(CLOSER_EVERY_S, len(pulses) * FOR_EACH_WORKER_S)
        self._closer = NowAndThen(every_s, at_once=False)
        hosts = await self._frontier.hosts(self._crawl, HOSTS_SEEN)
        self._seen = max((p.at for p in pulses), default=0.0), self._since(pulses), hosts

    def _since(self, pulses: list[Pulse]) -> SlotTime:
        """How slots spent their time since the last look. Workers that are new do not count yet."""
        before, self._slots = self._slots, {pulse.worker: pulse.slot_time for pulse in pulses}
        known = (name for name in self._slots if name in before)
        return sum((self._slots[name] - before[name] for name in known), SlotTime())
