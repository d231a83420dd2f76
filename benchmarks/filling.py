"""Fills a frontier with known URLs: `python -m benchmarks.filling ADDRESS COUNT`.

Their fingerprints are random, as real ones are. Prints their number, as JSON.
"""

from __future__ import annotations

import argparse
import logging
from random import Random

from benchmarks.spider import Bench
from shoal import config
from shoal.frontier import frontier_at
from shoal.runtime.eventloop import run
from shoal.spider.own_settings import settings_of

BATCH = 1_000
FINGERPRINT_BYTES = 8


async def fill(address: str, count: int) -> None:
    """Add `count` known URLs to the crawl of the benchmark's spider, as done elsewhere."""
    random = Random(count)
    async with frontier_at(address) as frontier:
        await frontier.start(Bench.name, config.build(settings_of(Bench)).rules)
        for start in range(0, count, BATCH):
            sizes = [FINGERPRINT_BYTES] * min(BATCH, count - start)
            await frontier.remember(Bench.name, [random.randbytes(size) for size in sizes])


def main() -> None:
    """Fill and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filling")
    parser.add_argument("address")
    parser.add_argument("count", type=int)
    args = parser.parse_args()
    logging.disable(logging.WARNING)  # The server has no persistence, which would be warned of.
    run(fill(args.address, args.count))
    print(args.count)


if __name__ == "__main__":
    main()
