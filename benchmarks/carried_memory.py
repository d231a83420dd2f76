"""Measures bytes of Redis per queued URL, apart from the set of known URLs.

Three layouts: everything in queues on Redis, most of it in blocks on Redis, and most of it in
blocks with a broker. `python -m benchmarks.carried_memory [--broker amqp://...]` prints one line of
JSON for each. Hosts have a rate, as is usual in crawls of this size, so that their windows are
small.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from typing import Any

import msgspec

from benchmarks.links import RULES, collect_seldom, followed, in_batches
from benchmarks.redis_server import RedisServer, redis_server
from shoal.frontier import frontier_at
from shoal.runtime.eventloop import run

CRAWL = "bench"
BATCH = 1_000
CHUNK = 50_000
"""How many URLs are generated at a time, to limit the memory of this process."""


async def measure(
    server: RedisServer, address: str, state: str | None, hosts: int, urls: int
) -> dict[str, Any]:
    """Queue URLs of `hosts` hosts, and measure the memory that they take."""
    server.empty()
    while server.info("memory")["lazyfree_pending_objects"]:
        time.sleep(0.1)  # Redis still frees data that was deleted before.
    async with frontier_at(address, state) as frontier:
        await frontier.start(CRAWL, msgspec.structs.replace(RULES, rate="1/s"))
        empty, spent_s = server.used_bytes(), 0.0
        for first in range(0, urls, CHUNK):
            links = followed(first, min(CHUNK, urls - first), hosts)
            began = time.monotonic()
            for batch in in_batches(links, BATCH):
                await frontier.add(CRAWL, batch)
            spent_s += time.monotonic() - began
            print(f"{hosts:,} hosts: {first + len(links):,} added", file=sys.stderr)
        used, stats = server.used_bytes() - empty, await frontier.stats(CRAWL)
        seen = server.freed_without("*:seen:*")
        await frontier.forget(CRAWL)
    return {
        "frontier": address.partition(":")[0] + ("?blocks" if "blocks" in address else ""),
        "hosts": hosts,
        "urls": stats.added,
        "blocks outside": stats.outside,
        "MB in Redis": round(used / 1e6, 1),
        "bytes per queued URL": round((used - seen) / urls, 1),
        "and per known one": round(seen / urls, 1),
        "URLs queued per second": round(urls / spent_s),
    }


def main() -> None:
    """Measure on a private server."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.carried_memory")
    parser.add_argument("--broker", help="the address of a RabbitMQ or SQS")
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, nargs="*", default=[1_000, 100_000])
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    collect_seldom()
    with redis_server() as server:
        places: list[tuple[str, str | None]] = [
            (server.address, None),
            (f"{server.address}?blocks=on", None),
            *([(args.broker, server.address)] if args.broker else []),
        ]
        for hosts in args.hosts:
            for address, state in places:
                print(json.dumps(run(measure(server, address, state, hosts, args.urls))))


if __name__ == "__main__":
    main()
