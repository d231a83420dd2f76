"""Measures URLs per second of the Redis frontier and of raw calls, in batches of a hundred.

One client, and four concurrent ones: four connections of one process, so that client and server
have a processor each. `python -m benchmarks.redis_frontier` prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from benchmarks.links import RULES, collect_seldom, followed, in_batches, sites
from benchmarks.redis_raw import RawQueue
from benchmarks.redis_server import Figures, RedisServer, redis_server, timed
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.values import Ask, Entry, Lease, Outcome, Verdict
from shoal.runtime.eventloop import run

CRAWL = "bench"
HOSTS = 20
BATCH = 100
SAMPLE = 40_000
WARM_UP = 4_000
CLIENTS = (1, 4)


class Queue(Protocol):
    """A client whose operations are measured."""

    async def open(self) -> None: ...
    def prepared(self, entries: Sequence[Entry]) -> Any: ...
    async def add(self, prepared: Any) -> int: ...
    async def lease(self, limit: int) -> list[Any]: ...
    async def finish(self, leases: list[Any]) -> None: ...
    async def close(self) -> None: ...


class ShoalQueue:
    """One client of the Redis frontier. Packing and unpacking tasks is part of its time."""

    def __init__(self, address: str) -> None:
        self._frontier = RedisFrontier(address)

    async def open(self) -> None:
        await self._frontier.start(CRAWL, RULES)

    def prepared(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        return entries

    async def add(self, prepared: Sequence[Entry]) -> int:
        return (await self._frontier.add(CRAWL, prepared)).added

    async def lease(self, limit: int) -> list[Lease]:
        return (await self._frontier.lease(CRAWL, Ask("bench", limit))).leases

    async def finish(self, leases: list[Lease]) -> None:
        outcomes = [Outcome(lease=lease, verdict=Verdict.DONE) for lease in leases]
        stale = await self._frontier.finish(CRAWL, outcomes)
        if stale:
            raise SystemExit(f"benchmarks: {len(stale)} leases were stale")

    async def close(self) -> None:
        await self._frontier.close()


async def steps(
    server: RedisServer, queues: Sequence[Queue], entries: list[Entry]
) -> dict[str, Figures]:
    """Measure each step on the same URLs: add, add again, lease, finish."""
    batches = [queues[0].prepared(batch) for batch in in_batches(entries, BATCH)]
    shares = [batches[number :: len(queues)] for number in range(len(queues))]
    leases: list[list[list[Any]]] = [[] for _ in queues]

    async def add(number: int) -> int:
        return sum([await queues[number].add(batch) for batch in shares[number]])

    async def lease(number: int) -> int:
        while granted := await queues[number].lease(BATCH):
            leases[number].append(granted)
        return sum(map(len, leases[number]))

    async def finish(number: int) -> int:
        for granted in leases[number]:
            await queues[number].finish(granted)
        return sum(map(len, leases[number]))

    async def measured(step: Callable[[int], Awaitable[int]], expected: int) -> Figures:
        with timed(server, len(entries)) as figures:
            counted = sum(await asyncio.gather(*map(step, range(len(queues)))))
        if counted != expected:
            raise SystemExit(f"benchmarks: {counted} of {expected} URLs")
        return figures

    return {
        "new": await measured(add, len(entries)),
        "duplicate": await measured(add, 0),
        "lease": await measured(lease, len(entries)),
        "finish": await measured(finish, len(entries)),
    }


async def contest(
    server: RedisServer, make: Callable[[], Queue], clients: int, entries: list[Entry]
) -> dict[str, Figures]:
    """Measure one contestant with some clients, on an empty server."""
    server.empty()
    queues = [make() for _ in range(clients)]
    for queue in queues:
        await queue.open()
    try:
        return await steps(server, queues, entries)
    finally:
        for queue in queues:
            await queue.close()


async def measure(server: RedisServer, rounds: int) -> list[dict[str, Any]]:
    """Measure both contestants in turn. The first round only warms up, and is not kept."""
    makers: dict[str, Callable[[], Queue]] = {
        "raw": lambda: RawQueue(server.port, sites(HOSTS)),
        "shoal": lambda: ShoalQueue(server.address),
    }
    entries = followed(0, SAMPLE, HOSTS)
    collect_seldom()
    kept = []
    for number in range(rounds + 1):
        for clients in CLIENTS:
            figures: dict[str, Any] = {"clients": clients}
            for name, make in makers.items():
                wanted = entries if number else entries[:WARM_UP]
                figures[name] = await contest(server, make, clients, wanted)
            if number:
                kept.append(figures)
                print(f"round {number}: {clients} clients", file=sys.stderr)
    return kept


def main() -> None:
    """Measure on a private server."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redis_frontier")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    logging.disable(logging.WARNING)  # The server has no persistence, which would be warned of.
    with redis_server() as server:
        print(json.dumps(run(measure(server, args.rounds))))


if __name__ == "__main__":
    main()
