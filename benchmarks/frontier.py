"""Measures the SQLite frontier by itself: new URLs, duplicates, lease and finish.

`python -m benchmarks.frontier DEPTH` prints one line of JSON: operations per second with DEPTH
tasks queued over twenty hosts, in batches of a hundred.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from shoal.config import Rules
from shoal.core.task import Task
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.values import Ask, Entry, Outcome, Verdict

CRAWL = "bench"
HOSTS = 20
BATCH = 100
SAMPLE = 20_000
RULES = Rules(rate="none", robots=False, concurrency_per_host=1_000)


def entries(first: int, count: int) -> list[Entry]:
    """Tasks of a large shop, spread evenly over the hosts."""
    admission = Admission(RULES)
    numbers = range(first, first + count)
    return [
        admission.admit(Task(url=f"https://shop-{n % HOSTS}.example/product/{n}?page=1"))
        for n in numbers
    ]


async def add(frontier: Frontier, tasks: Sequence[Entry]) -> None:
    """Add tasks in batches."""
    for start in range(0, len(tasks), BATCH):
        await frontier.add(CRAWL, tasks[start : start + BATCH])


async def drain(frontier: Frontier, count: int) -> None:
    """Lease and finish `count` tasks in batches."""
    done = 0
    while done < count:
        grant = await frontier.lease(CRAWL, Ask("bench", BATCH))
        outcomes = [Outcome(lease=lease, verdict=Verdict.DONE) for lease in grant.leases]
        await frontier.finish(CRAWL, outcomes)
        done += len(outcomes)


async def per_second(count: int, work: Callable[[], Awaitable[None]]) -> float:
    """Run `work`, and return its `count` operations per second."""
    started = time.perf_counter()
    await work()
    return count / (time.perf_counter() - started)


async def measure(depth: int) -> dict[str, float]:
    """Fill a frontier to the depth, then measure each operation there."""
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        frontier = SqliteFrontier(Path(folder) / "frontier.db")
        await frontier.start(CRAWL, RULES)
        for start in range(0, depth, SAMPLE):
            await add(frontier, entries(start, min(SAMPLE, depth - start)))
        fresh = entries(depth, SAMPLE)
        figures = {
            "new": await per_second(SAMPLE, lambda: add(frontier, fresh)),
            "duplicate": await per_second(SAMPLE, lambda: add(frontier, fresh)),
            "lease_finish": await per_second(SAMPLE, lambda: drain(frontier, SAMPLE)),
        }
        await frontier.close()
    return figures


def main() -> None:
    """Measure at one depth."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frontier")
    parser.add_argument("depth", type=int)
    args = parser.parse_args()
    print(
        json.dumps({name: round(value) for name, value in asyncio.run(measure(args.depth)).items()})
    )


if __name__ == "__main__":
    main()
