"""Makes a frontier know many URLs: `python -m benchmarks.filling ADDRESS COUNT`.

They are fingerprints of nothing, each as random as a real one. Prints their number, as JSON.
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
    """Know so many URLs as done elsewhere, in the crawl of the benchmark's spider."""
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
    logging.disable(logging.WARNING)  # That this server keeps nothing on disk is known.
    run(fill(args.address, args.count))
    print(args.count)


if __name__ == "__main__":
    main()
