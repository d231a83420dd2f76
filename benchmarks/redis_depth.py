"""Measures leasing and finishing by the depth of the queue and the number of hosts.

All crawls are filled first, on one server, and then measured in turn. After each round, the leased
URLs are replaced, so that every round has the same depth. `python -m benchmarks.redis_depth
[--deep]` prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys

import msgspec

from benchmarks.links import RULES, collect_seldom, followed, in_batches
from benchmarks.redis_server import Figures, RedisServer, redis_server, timed
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.values import Ask, Lease, Outcome, Verdict
from shoal.runtime.eventloop import run

BATCH = 100
FILL_BATCH = 1_000
CHUNK = 50_000
SAMPLE = 5_000

HOSTS_BY_DEPTH = {
    10_000: (1, 1_000),
    100_000: (1, 1_000, 100_000),
    1_000_000: (1, 1_000, 100_000),
}
DEEP = {5_000_000: (1, 100_000)}


class Depth(msgspec.Struct):
    """A crawl of a certain size, and its figures, round by round."""

    queued: int
    hosts: int
    added: int = 0
    lease: list[Figures] = []
    finish: list[Figures] = []

    @property
    def crawl(self) -> str:
        return f"bench-{self.queued}-{self.hosts}"


async def fill(frontier: RedisFrontier, crawls: list[Depth]) -> None:
    """Fill crawls over the same hosts. Each link is generated once for all of them."""
    hosts = crawls[0].hosts
    for crawl in crawls:
        await frontier.start(crawl.crawl, RULES)
    deepest = max(crawl.queued for crawl in crawls)
    for first in range(0, deepest, CHUNK):
        entries = followed(first, min(CHUNK, deepest - first), hosts)
        for crawl in crawls:
            for batch in in_batches(entries[: max(crawl.queued - first, 0)], FILL_BATCH):
                await frontier.add(crawl.crawl, batch)
        print(f"{hosts:,} hosts: {first + len(entries):,} queued", file=sys.stderr)
    for crawl in crawls:
        crawl.added = crawl.queued


async def lease_some(frontier: RedisFrontier, crawl: Depth) -> list[list[Lease]]:
    """Lease a sample, in batches."""
    batches = []
    for _ in range(SAMPLE // BATCH):
        grant = await frontier.lease(crawl.crawl, Ask("bench", BATCH))
        batches.append(grant.leases)
    if sum(map(len, batches)) != SAMPLE:
        raise SystemExit("benchmarks: there was less to lease than was queued")
    return batches


async def finish_all(frontier: RedisFrontier, crawl: Depth, batches: list[list[Lease]]) -> None:
    """Finish a sample, in batches."""
    for leases in batches:
        outcomes = [Outcome(lease=lease, verdict=Verdict.DONE) for lease in leases]
        await frontier.finish(crawl.crawl, outcomes)


async def sample(server: RedisServer, frontier: RedisFrontier, crawl: Depth) -> None:
    """Measure one round of one crawl, then fill it up again."""
    with timed(server, SAMPLE) as leasing:
        batches = await lease_some(frontier, crawl)
    with timed(server, SAMPLE) as finishing:
        await finish_all(frontier, crawl, batches)
    crawl.lease.append(leasing)
    crawl.finish.append(finishing)
    for batch in in_batches(followed(crawl.added, SAMPLE, crawl.hosts), FILL_BATCH):
        await frontier.add(crawl.crawl, batch)
    crawl.added += SAMPLE


async def measure(
    server: RedisServer, rounds: int, hosts_by_depth: dict[int, tuple[int, ...]]
) -> list[Depth]:
    """Measure all depths in turn, `rounds` times after a round to warm up."""
    frontier = RedisFrontier(server.address)
    crawls = [Depth(queued, hosts) for queued, many in hosts_by_depth.items() for hosts in many]
    for hosts in sorted({crawl.hosts for crawl in crawls}):
        await fill(frontier, [crawl for crawl in crawls if crawl.hosts == hosts])
    collect_seldom()
    for number in range(rounds + 1):
        for crawl in crawls:
            await sample(server, frontier, crawl)
        if not number:
            for crawl in crawls:
                crawl.lease, crawl.finish = [], []
        print(f"round {number} of {rounds}", file=sys.stderr)
    await frontier.close()
    return crawls


def main() -> None:
    """Measure on a private server."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redis_depth")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--deep", action="store_true", help="also 5 million: takes minutes")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    hosts_by_depth = HOSTS_BY_DEPTH | (DEEP if args.deep else {})
    with redis_server() as server:
        crawls = run(measure(server, args.rounds, hosts_by_depth))
    print(json.dumps(msgspec.to_builtins(crawls)))


if __name__ == "__main__":
    main()
