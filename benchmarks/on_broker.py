"""`python -m benchmarks.on_broker --broker amqp://...`: compares crawls with and without a broker.

Whole crawls with the queue on Redis, in blocks on Redis, and in blocks with a broker, in turn, and
their speed relative to Redis alone.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

from benchmarks import crawls
from benchmarks.crawls import Run, Setup
from benchmarks.redis_server import RedisServer, redis_server
from benchmarks.report import wide_console
from benchmarks.site import make_site, served_all

HOSTS = 20
ALONE = "Redis"


def contestants(
    bases: list[str], server: RedisServer, broker: str | None, setup: Setup
) -> dict[str, Callable[[], Run]]:
    """The contestants. All use the same pages and the same Redis, which is emptied before each."""

    def crawl(frontier: str, state: str = "") -> Run:
        server.empty()
        return crawls.shoal(bases, setup, frontier=frontier, state=state)

    found = {
        ALONE: lambda: crawl(server.address),
        "Redis with blocks": lambda: crawl(f"{server.address}?blocks=on"),
    }
    if broker:
        found["Redis and a broker"] = lambda: crawl(broker, server.address)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_broker")
    parser.add_argument("--broker", help="the address of a RabbitMQ or SQS")
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    console = wide_console()
    shops = [make_site(max(args.pages // args.hosts, 1), shop) for shop in range(args.hosts)]
    speeds: dict[str, list[float]] = {}
    with served_all(shops) as bases, redis_server(durable=True) as server:
        who = contestants(list(bases), server, args.broker, Setup(workers=args.workers))
        for number in range(1, args.rounds + 1):
            for name, crawl in who.items():
                run = crawl()
                speeds.setdefault(name, []).append(run.pages_per_s)
                console.print(
                    f"round {number}: {name}: {run.pages:,} pages, {run.pages_per_s:,.0f} pages/s,"
                    f" {run.cpu_us_per_page:,.0f} us of CPU a page"
                )
    for name, own in speeds.items():
        ratios = [a / b for a, b in zip(own, speeds[ALONE], strict=True)]
        console.print(f"{name}: {statistics.median(ratios):.2f} of Redis alone")


if __name__ == "__main__":
    main()
