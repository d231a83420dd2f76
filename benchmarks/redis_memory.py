"""Measures bytes of Redis per URL: queued, leased, and seen (exactly, and in a Bloom filter).

Figures are differences of the server's whole memory, not sizes of keys, except for leased URLs.
`python -m benchmarks.redis_memory` prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from typing import Literal

import msgspec

from benchmarks.links import RULES, collect_seldom, followed, in_batches
from benchmarks.redis_server import RedisServer, redis_server
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.values import Ask, Lease, Outcome, Verdict
from shoal.runtime.eventloop import run

CRAWL = "bench"
MILLION = 1_000_000
BATCH = 1_000
CHUNK = 50_000
"""How many URLs are added between two measurements."""
LEASED = 10_000


class Crawl(msgspec.Struct, frozen=True):
    """One kind of crawl to measure."""

    seen: Literal["exact", "bloom"]
    hosts: int


CRAWLS = (Crawl("exact", 1_000), Crawl("exact", 100_000), Crawl("bloom", 1_000))


class Sizes(msgspec.Struct):
    """What was measured, in bytes per URL."""

    seen: str
    hosts: int
    queued: float = 0.0
    leased: float = 0.0
    """Of a lease, in addition to what is kept for every seen URL."""
    seen_before: float = 0.0
    """Of done URLs, with a full hash table or Bloom filter."""
    seen_after: float = 0.0
    """At worst: just after the hash table has doubled, or the filter has got a new layer."""
    urls_before: int = 0
    urls_after: int = 0


class Filling:
    """A new crawl that is filled and drained again, and the server's memory meanwhile."""

    def __init__(self, server: RedisServer, crawl: Crawl) -> None:
        self._server = server
        self._crawl = crawl
        self._frontier = RedisFrontier(server.address)
        self._empty = 0
        self.urls = 0

    async def open(self) -> None:
        """Start on an empty server."""
        self._server.empty()
        await self._frontier.start(CRAWL, msgspec.structs.replace(RULES, seen=self._crawl.seen))
        self._empty = self._server.used_bytes()

    async def add(self, count: int) -> None:
        """Queue new URLs."""
        until = self.urls + count
        while self.urls < until:
            for batch in in_batches(followed(self.urls, CHUNK, self._crawl.hosts), BATCH):
                await self._frontier.add(CRAWL, batch)
            self.urls += CHUNK
            crawl = self._crawl
            print(f"{crawl.seen}, {crawl.hosts:,} hosts: {self.urls:,} added", file=sys.stderr)

    async def lease(self, count: int) -> list[Lease]:
        """Lease at least `count` tasks, or all there are."""
        leases = list[Lease]()
        while len(leases) < count:
            granted = (await self._frontier.lease(CRAWL, Ask("bench", BATCH))).leases
            if not granted:
                break
            leases += granted
        return leases

    async def drain(self, leases: list[Lease]) -> None:
        """Finish these leases, then lease and finish all tasks that are left."""
        while leases:
            for start in range(0, len(leases), BATCH):
                batch = leases[start : start + BATCH]
                outcomes = [Outcome(lease=lease, verdict=Verdict.DONE) for lease in batch]
                await self._frontier.finish(CRAWL, outcomes)
            leases = await self.lease(LEASED)

    def bytes_per_url(self) -> float:
        """The memory that the crawl has added to the server, per URL."""
        return (self._server.used_bytes() - self._empty) / self.urls

    async def close(self) -> None:
        await self._frontier.close()


async def sizes_of(server: RedisServer, crawl: Crawl) -> Sizes:
    """Measure a crawl that is full, then drained. Then add URLs until memory per URL jumps."""
    sizes = Sizes(crawl.seen, crawl.hosts)
    filling = Filling(server, crawl)
    await filling.open()
    await filling.add(MILLION)
    sizes.queued = filling.bytes_per_url()
    leases = await filling.lease(LEASED)
    sizes.leased = (server.bytes_of("*:held") + server.bytes_of("*:due")) / len(leases)
    await filling.drain(leases)
    sizes.seen_after = filling.bytes_per_url()
    while sizes.seen_after <= sizes.seen_before or not sizes.seen_before:
        sizes.seen_before, sizes.urls_before = sizes.seen_after, filling.urls
        await filling.add(CHUNK)
        await filling.drain(await filling.lease(LEASED))
        sizes.seen_after, sizes.urls_after = filling.bytes_per_url(), filling.urls
    await filling.close()
    return sizes


async def measure(server: RedisServer) -> list[Sizes]:
    """Measure all kinds of crawls. Sizes do not vary, so each is measured once."""
    collect_seldom()
    return [await sizes_of(server, crawl) for crawl in CRAWLS]


def main() -> None:
    """Measure on a private server."""
    argparse.ArgumentParser(prog="python -m benchmarks.redis_memory").parse_args()
    logging.disable(logging.WARNING)
    with redis_server() as server:
        print(json.dumps(msgspec.to_builtins(run(measure(server)))))


if __name__ == "__main__":
    main()
